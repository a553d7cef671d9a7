// What the waiting-room page knows, as a pure function of what the server said.
// Answers and frames may come late or twice; a lower version never wins, and no
// number is here that the server did not acknowledge.

import { newerBooking } from './booking.js';

/** How far a standing has come; at the same version it does not go back. */
const STEP = { PREQUEUE: 0, WAITING: 1, ADMITTED: 2, ACTIVE: 3, EXPIRED: 4, LEFT: 4, SOLD_OUT: 4, CLOSED: 4 };

/** Ranks beyond the first hundred are told to within a hundredth: growth below is noise. */
const RANK_NOISE = 0.02;

/** An estimate that grows by more than this says so. */
const ETA_GROWTH = 1.25;

export const QUEUE_RESTARTED = 'The queue was restarted. You have been put back in line.';

export const initial = Object.freeze({
  show: null,
  epoch: 0,
  place: null,
  shownRank: null, // never grows without rankNote
  startRank: null, // first acknowledged rank, for the progress bar
  rankNote: '',
  eta: null,
  etaNote: '',
  stats: null,
  hold: null, // the one in the basket
  otherHolds: [], // further ones of the same person, such as from another tab
  booking: null, // the one being followed
  notice: '',
  link: 'off', // off, connecting, live, polling, offline, stopped
  rejoin: false, // the place was lost with its epoch: join again
});

/** True while a place can still lead somewhere. */
export function alive(place) {
  return Boolean(place) && STEP[place.status] < STEP.EXPIRED;
}

/** reduce returns the state after an action; the given state is left as it is. */
export function reduce(state, action) {
  switch (action.type) {
    case 'show': return { ...(inEpoch(state, action.show.epoch) ?? state), show: action.show };
    case 'place': return withPlace(state, action.place, action.answer === true);
    case 'no-place': return withoutPlace(state);
    case 'frame': return withFrame(state, action.frame);
    case 'hold': return withHold(state, action.hold);
    case 'holds': return withHolds(state, action.holds);
    case 'hold-gone': return { ...state, hold: null, notice: action.notice ?? state.notice };
    case 'booking': return withBooking(state, action.booking, true);
    case 'booking-seen': return { ...state, booking: null };
    case 'notice': return { ...state, notice: action.notice };
    case 'link': return { ...state, link: action.link };
    case 'rejoining': return { ...state, rejoin: false };
    case 'signed-out': return { ...initial, show: state.show };
    default: return state;
  }
}

/** Settles the epoch of something new: null when it is of an older one. */
function inEpoch(state, epoch = state.epoch) {
  if (epoch < state.epoch) return null;
  if (epoch === state.epoch) return state;
  if (state.epoch === 0) return { ...state, epoch };
  const waiting = alive(state.place);
  return {
    ...state, epoch, place: null, shownRank: null, startRank: null, rankNote: '', eta: null, etaNote: '',
    stats: null, hold: null, otherHolds: [],
    notice: waiting ? QUEUE_RESTARTED : state.notice,
    rejoin: state.rejoin || waiting,
  };
}

/** Takes a place from an answer or a snapshot. A direct answer to an action may step back at its version. */
function withPlace(before, place, answer) {
  const state = inEpoch(before, place.epoch);
  if (!state) return before;
  const known = state.place;
  if (known && olderThan(known, place, answer)) return before;
  const fresh = known !== null && alive(place) && !alive(known);
  const next = { ...state, place: withProof(place, known), rejoin: alive(place) ? false : state.rejoin };
  if (fresh || !known) Object.assign(next, { shownRank: null, startRank: null, rankNote: '', eta: null, etaNote: '' });
  if (fresh && place.status === 'WAITING') next.rankNote = 'You joined again, so your place is at the end of the line.';
  if (place.status !== 'ACTIVE') Object.assign(next, { hold: null, otherHolds: [] });
  if (!alive(place)) return { ...next, shownRank: null, eta: null };
  return withRank(next, place);
}

/** What the draw gave is told by answers and not by frames; it holds as long as the epoch does. */
function withProof(place, known) {
  return place.draw || !known?.draw || known.requestId !== place.requestId ? place : { ...place, draw: known.draw };
}

function olderThan(known, place, answer) {
  const version = place.version ?? 0;
  if (version !== (known.version ?? 0)) return version < (known.version ?? 0);
  return !answer && STEP[place.status] < STEP[known.status];
}

/** Shows a rank and an estimate: a number that grows comes with its reason. */
function withRank(state, { rank = null, eta = null, reason = '' }) {
  if (state.place.status !== 'WAITING') {
    return { ...state, shownRank: null, rankNote: '', eta: null, etaNote: '' };
  }
  const next = { ...state, eta, etaNote: etaNote(state, eta) };
  const shown = state.shownRank;
  if (rank === null || rank <= 0) return next;
  if (shown === null) {
    return { ...next, shownRank: rank, startRank: state.startRank ?? rank, rankNote: reason || state.rankNote };
  }
  if (rank <= shown) return { ...next, shownRank: rank, rankNote: rank < shown ? '' : state.rankNote };
  if (!reason && rank - shown <= Math.max(1, shown * RANK_NOISE)) return next;
  return {
    ...next, shownRank: rank, startRank: Math.max(state.startRank ?? rank, rank),
    rankNote: reason || 'Your number was corrected: the earlier one was an estimate.',
  };
}

function etaNote(state, eta) {
  if (!eta || !state.eta) return '';
  const grown = eta.maxSeconds > state.eta.maxSeconds * ETA_GROWTH && eta.maxSeconds - state.eta.maxSeconds > 30;
  if (grown) return 'The line is moving slower than expected.';
  return eta.maxSeconds < state.eta.maxSeconds ? '' : state.etaNote;
}

function withoutPlace(state) {
  if (!state.place) return state;
  const notice = alive(state.place) ? 'The server has no place for you any more. You can join again.' : state.notice;
  return { ...state, place: null, shownRank: null, startRank: null, rankNote: '', eta: null, etaNote: '', hold: null, otherHolds: [], notice };
}

function withFrame(before, frame) {
  if (frame.showId && before.show && frame.showId !== before.show.id) return before;
  switch (frame.event) {
    case 'HELLO': return (frame.places ?? []).filter((p) => p.showId === before.show?.id)
      .reduce((state, place) => withPlace(state, place, false), before);
    case 'ADMISSION': return withAdmission(before, frame);
    case 'RANK': return withRankFrame(before, frame);
    case 'STATS': return withStats(before, frame);
    case 'SOLD_OUT': return withSoldOut(before, frame);
    case 'SHOW': return withShow(before, frame);
    case 'BOOKING': return withBooking(before, frame.booking ?? frame);
    default: return before;
  }
}

function withAdmission(before, frame) {
  const state = inEpoch(before, frame.epoch);
  if (!state) return before;
  const known = state.place;
  if (known && frame.requestId && known.requestId !== frame.requestId) return state;
  const place = frame.place ?? {
    ...known, showId: frame.showId, requestId: frame.requestId ?? known?.requestId, status: frame.status,
    claimBy: frame.claimBy ?? null, expiresAt: frame.expiresAt ?? null, epoch: state.epoch, version: frame.version ?? known?.version ?? 0,
  };
  return withPlace(state, place, false);
}

function withRankFrame(before, frame) {
  const state = inEpoch(before, frame.epoch);
  if (!state) return before;
  const known = state.place;
  if (!known || known.status !== 'WAITING' || (frame.version ?? 0) < (known.version ?? 0)) return state;
  const place = { ...known, rank: frame.rank, waiting: frame.waiting ?? known.waiting, eta: frame.eta ?? null, odds: frame.odds ?? known.odds, version: frame.version ?? known.version };
  return withRank({ ...state, place }, frame);
}

function withStats(before, frame) {
  const state = inEpoch(before, frame.epoch);
  if (!state || (state.stats && (frame.version ?? 0) < (state.stats.version ?? 0))) return state ?? before;
  const show = state.show && frame.availability
    ? { ...state.show, phase: frame.phase ?? state.show.phase, availability: frame.availability, sold: frame.sold ?? state.show.sold }
    : state.show;
  return { ...state, stats: frame, show };
}

/** Whoever only waits is done; who is inside may still buy what they hold. Seats may come back. */
function withSoldOut(before, frame) {
  const state = inEpoch(before, frame.epoch);
  if (!state || !state.show) return state ?? before;
  if (frame.soldOut === false) {
    const phase = state.show.phase === 'SOLD_OUT' ? 'OPEN' : state.show.phase;
    return { ...state, show: { ...state.show, phase, availability: 'AVAILABLE' } };
  }
  const show = { ...state.show, phase: 'SOLD_OUT', availability: 'SOLD_OUT' };
  const place = state.place;
  if (!place || STEP[place.status] > STEP.WAITING) return { ...state, show };
  return { ...state, show, place: { ...place, status: 'SOLD_OUT' }, shownRank: null, eta: null };
}

/** The show as the server tells it; a bare word of its phase or message changes only that. */
function withShow(state, frame) {
  if (frame.show) return { ...(inEpoch(state, frame.show.epoch) ?? state), show: frame.show };
  if (!state.show) return state;
  return { ...state, show: { ...state.show, phase: frame.phase ?? state.show.phase, message: frame.message ?? state.show.message } };
}

/** The same hold as of a later answer replaces the earlier one. */
function withHold(state, hold) {
  const known = state.hold;
  if (known && known.holdId === hold.holdId && Date.parse(hold.serverTime) < Date.parse(known.serverTime)) return state;
  return { ...state, hold, notice: '' };
}

/** All live holds of the person, as the server lists them: the one in the basket stays there. */
function withHolds(state, holds) {
  const hold = holds.find((h) => h.holdId === state.hold?.holdId) ?? holds[0] ?? null;
  return { ...state, hold, otherHolds: holds.filter((h) => h !== hold) };
}

/** Every seat that the person holds. */
export function heldSeats({ hold, otherHolds }) {
  return [hold, ...otherHolds].flatMap((h) => h?.seats ?? []);
}

/**
 * Follows the booking under way. A decision about another one is for the list
 * only: the server tells old ones again after each reconnect.
 */
function withBooking(state, booking, answer = false) {
  if (!booking?.bookingId || (booking.showId && state.show && booking.showId !== state.show.id)) return state;
  const known = state.booking;
  if (known?.bookingId !== booking.bookingId && !answer && booking.status !== 'PENDING') return state;
  const next = { ...state, booking: newerBooking(known, booking) };
  if (next.booking.status !== 'PENDING' && state.hold && concerns(booking, state.hold)) next.hold = null;
  return next;
}

function concerns(booking, hold) {
  return booking.holdId ? booking.holdId === hold.holdId : (booking.seats ?? []).some((seat) => hold.seats.includes(seat));
}

/** The share of the way through the line, 0 to 1; null when there is no rank. */
export function progress({ shownRank, startRank }) {
  if (!shownRank || !startRank) return null;
  return Math.min(1, Math.max(0, (startRank - shownRank + 1) / (startRank + 1)));
}
