package simulate

import "foyer/domain"

// Join gives somebody a place, unless they have one or there are no new ones. drawn is
// their place in the draw; it counts only before the opening. lane is the number of the
// line to join.
func (r *Room) Join(now int64, id int32, drawn int64, lane int) (created bool) {
	r.pass(now)
	p := &r.people[id]
	stands := r.Phase(now)
	switch {
	case p.standing == Waiting || p.standing == Admitted || p.standing == Active:
		return false
	case stands == domain.PhaseScheduled || stands == domain.PhaseSoldOut || stands == domain.PhaseClosed:
		return false
	}
	r.expire(id)
	if r.waiting == 0 && r.vacancy(now) > 0 {
		r.admit(now, id)
		return true
	}
	score := drawn
	if stands != domain.PhasePrequeue {
		r.seq++
		score = domain.DrawCeiling + r.seq
	}
	*p = place{score: score, standing: Waiting, lane: uint8(lane)}
	r.waiting++
	r.lanes[lane].waiting++
	r.lanes[lane].add(spot{score, id})
	r.Touch(now, id)
	return true
}

// Touch renews the last contact of somebody who waits.
func (r *Room) Touch(now int64, id int32) {
	if p := &r.people[id]; p.standing == Waiting {
		p.contact = now
		r.contacts.push(due{now, id})
	}
}

// Stay renews the contact of somebody who waits until the next Touch, which is their
// last contact then.
func (r *Room) Stay(id int32) { r.people[id].contact = present }

// Claim takes a turn; it fails for whoever has none.
func (r *Room) Claim(now int64, id int32) bool {
	r.pass(now)
	p := &r.people[id]
	if p.standing == Admitted && r.Phase(now) != domain.PhaseClosed {
		r.learnTurns(1, 0)
		p.standing, p.deadline = Active, now+r.rules.Session
		r.sessions.push(due{p.deadline, id})
	}
	return p.standing == Active
}

// Leave ends a place at somebody's wish; it fails for whoever has none.
func (r *Room) Leave(now int64, id int32) bool {
	r.pass(now)
	r.expire(id)
	standing := r.people[id].standing
	if standing != Waiting && standing != Admitted && standing != Active {
		return false
	}
	r.finish(id, Left)
	return true
}

// Buy makes a confirmed booking true, and ends its person's session.
func (r *Room) Buy(now int64, id int32, seats int) {
	r.pass(now)
	if p := &r.people[id]; r.sweep(id) || p.standing == Admitted || p.standing == Active {
		r.finish(id, Left)
	}
	r.sold += seats
}

// Step is what one admit step did. It is good until the next.
type Step struct {
	Admitted []int32 // in order
	Ended    []int32 // turns and sessions that ran out, then waiters who fell silent
	Skipped  bool    // too soon after the last step
}

// Admit ends what has run out, drops who fell silent and lets in as many as there is
// room for, in order: all that a worker does by calling the step in Redis until there is
// nothing more to do. interval is that of regular steps; 0: a slot was freed.
func (r *Room) Admit(now, interval int64, step *Step) {
	r.pass(now)
	*step = Step{Admitted: step.Admitted[:0], Ended: step.Ended[:0]}
	since := now - r.lastTick
	if interval > 0 && r.unswept == 0 && since >= 0 && since*2 < interval {
		step.Skipped = true
		return
	}
	unclaimed := 0
	for _, id := range r.overdue {
		if r.sweep(id) {
			step.Ended = append(step.Ended, id)
			if r.people[id].unclaimed {
				unclaimed++
			}
		}
	}
	if unclaimed > 0 {
		r.learnTurns(0, unclaimed)
	}
	r.overdue = r.overdue[:0]

	// While nobody ticked, nobody may have been able to renew presence either.
	if since > outage {
		r.dropAfter = now + r.rules.Grace + renewal
	}
	r.lastTick = now
	stands := r.Phase(now)
	if r.dropAfter <= now && stands != domain.PhaseSoldOut && stands != domain.PhaseClosed {
		r.dropSilent(now-r.rules.Grace, step)
	}
	vacancy := r.vacancy(now)
	for free := vacancy; free > 0 && r.waiting > 0; free-- {
		lane := r.nextLane()
		id := lane.next(r.people)
		r.waiting--
		lane.waiting--
		r.admit(now, id)
		step.Admitted = append(step.Admitted, id)
	}
	if vacancy > 0 {
		r.settleLanes()
	}
}

// dropSilent ends the places of waiters without contact since an instant.
func (r *Room) dropSilent(since int64, step *Step) {
	for d, ok := r.contacts.over(since); ok; d, ok = r.contacts.over(since) {
		if p := &r.people[d.id]; p.standing == Waiting && p.contact == d.at {
			r.finish(d.id, Expired)
			step.Ended = append(step.Ended, d.id)
		}
	}
}
