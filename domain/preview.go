package domain

import "math"

// MedianWait estimates how many seconds the person in the middle of the line waits from
// now, were the show to run with the settings given: as long as the rate takes, or as
// long as slots take to come free, whichever is longer. How fast slots come free is what
// was measured while the house was full, and else that everybody stays for their whole
// session: then it is the longest that the wait can be. 0 when nobody waits.
func MedianWait(s Stats, q QueueSettings) int64 {
	rank := float64((s.Waiting + 1) / 2)
	if rank == 0 {
		return 0
	}
	leaving := 60 / float64(q.SessionSeconds) // of one slot, in a minute
	if s.AdmittedLastMinute > 0 && s.Active > 0 && s.Active >= s.MaxActive {
		leaving = float64(s.AdmittedLastMinute) / float64(s.Active)
	}
	most, active := float64(q.MaxActive), float64(s.Active)
	minutes := rank / float64(q.RatePerMinute)
	switch {
	case active > most: // they leave by themselves first; nobody is thrown out
		minutes = max(minutes, (active-most)/(active*leaving)+rank/(most*leaving))
	case rank > most-active:
		minutes = max(minutes, (rank-(most-active))/(most*leaving))
	}
	return int64(math.Ceil(minutes * 60))
}
