import assert from 'node:assert/strict';
import { test } from 'node:test';
import { book, decided, idempotencyKey, lookAgainAfter, newerBooking } from '../js/booking.js';
import { storage } from './support.mjs';

// G7: a double click and a retry after a timeout made two bookings.
test('one hold has one key, through retries, double clicks and reloads', () => {
  const store = storage();
  let made = 0;
  const make = () => `key-${++made}`;
  assert.equal(idempotencyKey('h1', store, make), 'key-1');
  assert.equal(idempotencyKey('h1', store, make), 'key-1');
  assert.equal(idempotencyKey('h2', store, make), 'key-2');
});

test('booking sends the key of its hold, and may be repeated', async () => {
  const calls = [];
  const api = { post: async (...call) => { calls.push(call); return { status: 'PENDING' }; } };
  const store = storage();
  await book(api, 'my show', 'h', store);
  await book(api, 'my show', 'h', store);
  assert.equal(calls[0][0], '/api/shows/my%20show/bookings');
  assert.deepEqual(calls[0][1], { holdId: 'h' });
  assert.equal(calls[0][2].headers['Idempotency-Key'], calls[1][2].headers['Idempotency-Key']);
  assert.equal(calls[0][2].safe, true);
});

test('a decision stays, and only a cancellation follows it', () => {
  const b = (status, more = {}) => ({ bookingId: 'b', status, ...more });
  assert.equal(newerBooking(b('CONFIRMED'), b('PENDING')).status, 'CONFIRMED');
  assert.equal(newerBooking(b('PENDING', { holdId: 'h' }), b('CONFIRMED')).holdId, 'h');
  assert.equal(newerBooking(b('CONFIRMED'), b('CANCELLED')).status, 'CANCELLED');
  assert.equal(newerBooking(b('CANCELLED'), b('CONFIRMED')).status, 'CANCELLED');
  assert.equal(newerBooking(b('CONFIRMED'), { bookingId: 'c', status: 'PENDING' }).bookingId, 'c');
  assert.equal(decided(b('PENDING')), false);
});

test('looking again gets calmer, up to ten seconds', () => {
  assert.equal(lookAgainAfter(0), 500);
  assert.ok(lookAgainAfter(3) > lookAgainAfter(2));
  assert.equal(lookAgainAfter(50), 10_000);
});
