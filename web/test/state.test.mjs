import assert from 'node:assert/strict';
import { test } from 'node:test';
import { QUEUE_RESTARTED, alive, heldSeats, initial, progress, reduce } from '../js/state.js';

const SHOW = { id: 's', phase: 'OPEN', availability: 'AVAILABLE', seating: { seatLimit: 4, sections: [] } };
const at = (ms) => new Date(Date.UTC(2030, 0, 1) + ms).toISOString();

const place = (over = {}) => ({
  requestId: 'r', showId: 's', status: 'WAITING', rank: 50, waiting: 90, eta: { minSeconds: 60, maxSeconds: 120 }, epoch: 1, version: 10, ...over,
});
const rank = (over) => ({ event: 'RANK', showId: 's', epoch: 1, waiting: 90, eta: null, ...over });

function run(...actions) {
  return actions.reduce(reduce, reduce(initial, { type: 'show', show: SHOW }));
}
const got = (over, answer) => ({ type: 'place', place: place(over), answer });
const frame = (f) => ({ type: 'frame', frame: f });

// T30: a page showed "you are number 5" although the join had never arrived.
test('no number before the server has told one', () => {
  assert.equal(run().shownRank, null);
  assert.equal(run(frame(rank({ rank: 5, version: 3 }))).shownRank, null);
  assert.equal(run(got()).shownRank, 50);
});

// R32: a stale snapshot came after a newer one and froze the page.
test('a lower version never wins', () => {
  const state = run(got(), frame(rank({ rank: 30, version: 20 })), got({ rank: 45, version: 15 }), frame(rank({ rank: 40, version: 19 })));
  assert.equal(state.shownRank, 30);
  assert.equal(state.place.version, 20);
});

test('at one version a place does not go back, except by the answer to an action', () => {
  const active = run(got({ status: 'ACTIVE', expiresAt: at(0) }));
  assert.equal(reduce(active, got({ status: 'ADMITTED' })).place.status, 'ACTIVE');
  const over = run(got({ status: 'EXPIRED', rank: null }));
  assert.equal(reduce(over, got({ status: 'WAITING' }, true)).place.status, 'WAITING');
});

// T24: a position moved the wrong way and nobody said why.
test('the shown rank never grows without a reason shown with it', () => {
  let state = run(got());
  state = reduce(state, frame(rank({ rank: 51, version: 11 })));
  assert.equal(state.shownRank, 50, 'noise of the estimate is not shown');
  state = reduce(state, frame(rank({ rank: 80, version: 12 })));
  assert.equal(state.shownRank, 80);
  assert.notEqual(state.rankNote, '');
  state = reduce(state, frame(rank({ rank: 70, version: 13 })));
  assert.equal(state.rankNote, '', 'the reason goes when the number falls again');
  state = reduce(state, frame(rank({ rank: 90, version: 14, reason: 'The draw was repeated.' })));
  assert.equal(state.rankNote, 'The draw was repeated.');
});

test('joining again says that it is the end of the line', () => {
  const state = run(got(), got({ status: 'EXPIRED', rank: null, version: 11 }), got({ rank: 90, version: 12 }, true));
  assert.equal(state.shownRank, 90);
  assert.match(state.rankNote, /end of the line/);
});

// T27: the estimate kept rising, and people thought that others were let past.
test('an estimate that grows says so, and stops saying so', () => {
  let state = run(got(), frame(rank({ rank: 49, version: 11, eta: { minSeconds: 200, maxSeconds: 400 } })));
  assert.match(state.etaNote, /slower than expected/);
  state = reduce(state, frame(rank({ rank: 48, version: 12, eta: { minSeconds: 100, maxSeconds: 300 } })));
  assert.equal(state.etaNote, '');
});

// T36: after a reset the old numbers were shown for a day.
test('a new epoch clears the place, says so and asks to join again', () => {
  const state = run(got(), frame({ event: 'STATS', showId: 's', epoch: 2, version: 1, waiting: 0 }));
  assert.equal(state.place, null);
  assert.equal(state.shownRank, null);
  assert.equal(state.notice, QUEUE_RESTARTED);
  assert.equal(state.rejoin, true);
  assert.equal(reduce(state, got({ version: 99 })).place, null, 'an answer of the old epoch is dropped');
  const back = reduce(state, got({ epoch: 2, version: 2, rank: 7 }, true));
  assert.equal(back.shownRank, 7);
  assert.equal(back.rejoin, false);
});

// Redis was lost: asking for the place answered "none", and only the show told the new epoch.
test('the show\'s own epoch restarts the queue as well', () => {
  const state = run(got(), { type: 'show', show: { ...SHOW, epoch: 2 } });
  assert.equal(state.rejoin, true);
  assert.equal(state.place, null);
  assert.equal(run(got(), { type: 'show', show: { ...SHOW, epoch: 1 } }).rejoin, false);
});

test('a new epoch does not bring back somebody who had left', () => {
  const state = run(got({ status: 'LEFT', rank: null }), frame({ event: 'STATS', showId: 's', epoch: 2, version: 1 }));
  assert.equal(state.rejoin, false);
});

test('turn and session follow from frames, and the rank goes', () => {
  let state = run(got(), frame({ event: 'ADMISSION', showId: 's', requestId: 'r', status: 'ADMITTED', claimBy: at(0), epoch: 1, version: 11 }));
  assert.equal(state.place.status, 'ADMITTED');
  assert.equal(state.place.claimBy, at(0));
  assert.equal(state.shownRank, null);
  state = reduce(state, frame(rank({ rank: 3, version: 12 })));
  assert.equal(state.place.status, 'ADMITTED', 'a late rank changes nothing');
  state = reduce(state, frame({ event: 'ADMISSION', showId: 's', requestId: 'r', epoch: 1, version: 13, status: 'ACTIVE', place: place({ status: 'ACTIVE', version: 13, expiresAt: at(9), pass: 'p' }) }));
  assert.equal(state.place.pass, 'p', 'the whole place is taken when the frame has it');
});

test('frames of another show or another place are not ours', () => {
  const state = run(got());
  assert.equal(reduce(state, frame({ event: 'ADMISSION', showId: 'x', requestId: 'r', status: 'ADMITTED', epoch: 1, version: 99 })), state);
  assert.equal(reduce(state, frame({ event: 'ADMISSION', showId: 's', requestId: 'other', status: 'ADMITTED', epoch: 1, version: 99 })).place.status, 'WAITING');
});

// T31: people were left waiting for a sale that had ended.
test('sold out ends waiting, and not who is inside', () => {
  const gone = { event: 'SOLD_OUT', showId: 's', epoch: 1, version: 20, soldOut: true };
  const waiting = run(got(), frame(gone));
  assert.equal(waiting.place.status, 'SOLD_OUT');
  assert.equal(waiting.show.phase, 'SOLD_OUT');
  assert.equal(run(got({ status: 'ACTIVE' }), frame(gone)).place.status, 'ACTIVE');
  assert.equal(reduce(waiting, frame({ ...gone, version: 21, soldOut: false })).show.phase, 'OPEN', 'a cancellation brings seats back');
});

test('a place that the server does not know any more goes, with a word', () => {
  const state = reduce(run(got()), { type: 'no-place' });
  assert.equal(state.place, null);
  assert.notEqual(state.notice, '');
  assert.equal(alive(state.place), false);
});

const hold = (over = {}) => ({ holdId: 'h', seats: ['A-1-1'], serverTime: at(10), expiresAt: at(300_000), ...over });

// B15: the mark "mine" outlived the basket, and the seat was refused on booking.
test('seats of one\'s own end with the hold or the session', () => {
  const inside = run(got({ status: 'ACTIVE' }), { type: 'hold', hold: hold() });
  assert.deepEqual(heldSeats(inside), ['A-1-1']);
  assert.deepEqual(heldSeats(reduce(inside, { type: 'hold-gone' })), []);
  assert.deepEqual(heldSeats(reduce(inside, got({ status: 'EXPIRED', version: 11 }))), []);
  assert.equal(reduce(inside, { type: 'hold', hold: hold({ serverTime: at(5), expiresAt: at(1) }) }).hold.expiresAt, at(300_000), 'an earlier answer is late');
});

// B5: a hold from another tab could be neither seen nor released.
test('holds of other tabs are kept in sight', () => {
  const state = run(got({ status: 'ACTIVE' }), { type: 'holds', holds: [hold(), hold({ holdId: 'i', seats: ['A-2-2'] })] });
  assert.equal(state.hold.holdId, 'h');
  assert.equal(state.otherHolds[0].holdId, 'i');
  assert.deepEqual(heldSeats(state), ['A-1-1', 'A-2-2']);
});

test('a booking under way is followed to its decision, and late news does not undo it', () => {
  const pending = { bookingId: 'b', showId: 's', holdId: 'h', seats: ['A-1-1'], status: 'PENDING' };
  let state = run(got({ status: 'ACTIVE' }), { type: 'hold', hold: hold() }, { type: 'booking', booking: pending });
  assert.notEqual(state.hold, null, 'the seats stay on show while it is pending');
  state = reduce(state, frame({ event: 'BOOKING', showId: 's', bookingId: 'b', status: 'CONFIRMED', seats: ['A-1-1'], price: 25 }));
  assert.equal(state.booking.status, 'CONFIRMED');
  assert.equal(state.hold, null);
  state = reduce(state, { type: 'booking', booking: pending });
  assert.equal(state.booking.status, 'CONFIRMED');
});

// After a reconnect the server tells old bookings again: an old rejection was shown as news.
test('the decision of an old booking opens no panel and drops no hold', () => {
  const state = run(got({ status: 'ACTIVE' }), { type: 'hold', hold: hold() },
    frame({ event: 'BOOKING', showId: 's', bookingId: 'old', status: 'CANCELLED', seats: ['A-1-1'] }));
  assert.equal(state.booking, null);
  assert.equal(state.hold.holdId, 'h');
});

test('progress goes from the first acknowledged number to the front', () => {
  assert.equal(progress(run()), null);
  const first = run(got({ rank: 100 }));
  const later = reduce(first, frame(rank({ rank: 1, version: 11 })));
  assert.ok(progress(first) < 0.05);
  assert.ok(progress(later) > 0.95);
});

test('the HELLO of a connection brings the place at this show only', () => {
  const hello = { event: 'HELLO', places: [place({ showId: 'other', rank: 1 }), place({ rank: 12 })] };
  assert.equal(run(frame(hello)).shownRank, 12);
});

test('a pause and its message reach the page', () => {
  const state = run(frame({ event: 'SHOW', showId: 's', phase: 'PAUSED', message: 'Back in 5 minutes' }));
  assert.equal(state.show.phase, 'PAUSED');
  assert.equal(state.show.message, 'Back in 5 minutes');
});
