// Numbers and times in plain words.

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A whole number with separators, or a dash when there is none. */
export function count(n) {
  return Number.isFinite(n) ? n.toLocaleString('en') : '–';
}

/** One thing or many: plural(2, 'seat') is "2 seats". */
export function plural(n, one, many = one + 's') {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** The odds of somebody who waits, in a sentence; '' where they are not known. */
export function odds(told) {
  if (!told) return '';
  const lately = told.seatsPerBuyer ? ` Recent buyers took ${told.seatsPerBuyer.toFixed(1)} each.` : '';
  return `${plural(told.seatsLeft, 'seat is', 'seats are')} not sold, and ${plural(told.ahead, 'person chooses', 'people choose')} before you.${lately}`;
}

/** A price with two decimals; the currency is the shop's and not known here. */
export function price(amount) {
  return Number(amount).toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 });
}

/** Remaining milliseconds as 0:07, 12:30, 1:02:03 or "2 days 3 h"; rounded up, so that 0:00 means over. */
export function countdown(ms) {
  if (ms === null || ms === undefined) return '';
  const seconds = Math.ceil(ms / 1000);
  if (seconds >= DAY / 1000) {
    const days = Math.floor(seconds / 86_400);
    return `${plural(days, 'day')} ${Math.floor((seconds % 86_400) / 3600)} h`;
  }
  const two = (n) => String(n).padStart(2, '0');
  const h = Math.floor(seconds / 3600);
  const m = Math.floor((seconds % 3600) / 60);
  const s = seconds % 60;
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}

/** Remaining milliseconds for a screen reader: "2 minutes 5 seconds". */
export function spokenTime(ms) {
  const seconds = Math.ceil((ms ?? 0) / 1000);
  const m = Math.floor(seconds / 60);
  const s = seconds % 60;
  const parts = [];
  if (m > 0) parts.push(plural(m, 'minute'));
  if (s > 0 || m === 0) parts.push(plural(s, 'second'));
  return parts.join(' ');
}

/** For how long the place of somebody is kept whose page is closed or offline. */
export function kept(graceSeconds) {
  const time = graceSeconds < 120 ? plural(graceSeconds, 'second') : plural(Math.floor(graceSeconds / 60), 'minute');
  return `Should it close, or your connection break, your place is kept for ${time}: come back by then.`;
}

/** An estimated wait as a range that a person would say. */
export function wait(eta) {
  if (!eta) return 'No estimate yet';
  const { minSeconds: low, maxSeconds: high } = eta;
  if (high <= 60) return 'Less than a minute';
  const [unit, size] = high < 5400 ? ['minute', 60] : ['hour', 3600];
  const from = Math.max(0, Math.floor(low / size));
  const to = Math.ceil(high / size);
  if (from === 0) return `Up to ${plural(to, unit)}`;
  if (from === to) return `About ${plural(from, unit)}`;
  return `About ${count(from)} to ${plural(to, unit)}`;
}

/** An instant in the visitor's own zone, with the zone named. */
export function when(instant) {
  if (!instant) return '';
  return new Date(instant).toLocaleString(undefined, {
    weekday: 'short', day: 'numeric', month: 'short', year: 'numeric',
    hour: '2-digit', minute: '2-digit', timeZoneName: 'short',
  });
}

/** A time of day for a chat message. */
export function clockTime(instant) {
  return new Date(instant).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' });
}

/** Seat ids in a readable list, A-1-9 before A-1-10. */
export function seatList(seats) {
  return seats.toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true })).join(', ');
}

const PHASES = {
  SCHEDULED: 'Not open yet',
  PREQUEUE: 'Pre-queue open',
  OPEN: 'On sale',
  PAUSED: 'Paused',
  SOLD_OUT: 'Sold out',
  CLOSED: 'Sale ended',
};

export function phaseName(phase) {
  return PHASES[phase] ?? phase;
}

/** What the three states of availability mean; all in baskets is not sold out. */
export function availabilityText(availability) {
  switch (availability) {
    case 'AVAILABLE': return 'Seats available';
    case 'ALL_HELD': return 'All seats are in baskets, some may come back';
    case 'SOLD_OUT': return 'Every seat is sold';
    default: return '';
  }
}

/** The next moment of a show that matters to a visitor: {label, at} or null. */
export function nextMoment(show) {
  if (show.phase === 'SCHEDULED') {
    return show.prequeueAt
      ? { label: 'Pre-queue opens', at: show.prequeueAt }
      : { label: 'Opens', at: show.opensAt };
  }
  if (show.phase === 'PREQUEUE') return { label: 'Opens', at: show.opensAt };
  return null;
}
