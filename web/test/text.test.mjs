import assert from 'node:assert/strict';
import { test } from 'node:test';
import { availabilityText, countdown, kept, nextMoment, plural, price, seatList, spokenTime, wait } from '../js/text.js';

test('countdowns round up, so that zero means over', () => {
  assert.equal(countdown(0), '0:00');
  assert.equal(countdown(1), '0:01');
  assert.equal(countdown(59_001), '1:00');
  assert.equal(countdown(3_723_000), '1:02:03');
  assert.equal(countdown(2 * 86_400_000 + 3 * 3_600_000), '2 days 3 h');
  assert.equal(countdown(null), '');
  assert.equal(spokenTime(65_000), '1 minute 5 seconds');
  assert.equal(spokenTime(60_000), '1 minute');
});

test('an estimate is a range in plain words', () => {
  assert.equal(wait(null), 'No estimate yet');
  assert.equal(wait({ minSeconds: 0, maxSeconds: 0 }), 'Less than a minute');
  assert.equal(wait({ minSeconds: 20, maxSeconds: 100 }), 'Up to 2 minutes');
  assert.equal(wait({ minSeconds: 180, maxSeconds: 300 }), 'About 3 to 5 minutes');
  assert.equal(wait({ minSeconds: 120, maxSeconds: 120 }), 'About 2 minutes');
  assert.equal(wait({ minSeconds: 3600, maxSeconds: 7300 }), 'About 1 to 3 hours');
});

// D1: a show whose seats are all in baskets was taken for sold out, and people left.
test('all held is not sold out', () => {
  assert.match(availabilityText('ALL_HELD'), /some may come back/);
  assert.notEqual(availabilityText('ALL_HELD'), availabilityText('SOLD_OUT'));
});

test('prices, numbers and the next moment', () => {
  assert.equal(price(25.5), '25.50');
  assert.equal(seatList(['A-1-10', 'A-1-9']), 'A-1-9, A-1-10');
  assert.equal(plural(1, 'seat'), '1 seat');
  assert.equal(plural(1200, 'person', 'people'), '1,200 people');
  assert.deepEqual(nextMoment({ phase: 'SCHEDULED', prequeueAt: 'a', opensAt: 'b' }), { label: 'Pre-queue opens', at: 'a' });
  assert.deepEqual(nextMoment({ phase: 'SCHEDULED', prequeueAt: null, opensAt: 'b' }), { label: 'Opens', at: 'b' });
  assert.equal(nextMoment({ phase: 'OPEN' }), null);
});

// T39: closing the tab lost the place, and nothing had said so.
test('the page says for how long a place is kept', () => {
  assert.match(kept(60), /kept for 60 seconds/);
  assert.match(kept(1), /kept for 1 second:/);
  assert.match(kept(200), /kept for 3 minutes/, 'rounded down: nobody comes too late for it');
});
