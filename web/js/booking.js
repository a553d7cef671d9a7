// Buying the held seats: one intent, however often it has to be asked for.

import { at } from './api.js';

const RANK = { PENDING: 0, REJECTED: 1, CONFIRMED: 1, CANCELLED: 2 };

/** True when the booking will not change by itself any more. */
export function decided(booking) {
  return booking.status !== 'PENDING';
}

/** The newer of two states of bookings; a late PENDING never replaces a decision. */
export function newerBooking(known, incoming) {
  if (!known || known.bookingId !== incoming.bookingId) return incoming;
  return RANK[incoming.status] >= RANK[known.status] ? { ...known, ...incoming } : known;
}

/**
 * The Idempotency-Key of a hold: made once and kept through retries, double
 * clicks and reloads, so that one hold is never bought twice.
 */
export function idempotencyKey(holdId, storage = globalThis.sessionStorage, newKey = () => globalThis.crypto.randomUUID()) {
  const name = `foyer.key.${holdId}`;
  let key = storage.getItem(name);
  if (!key) {
    key = newKey();
    storage.setItem(name, key);
  }
  return key;
}

/** Asks to buy a hold; the answer is a booking, PENDING as a rule. Safe to repeat. */
export function book(api, showId, holdId, storage) {
  return api.post(at`/api/shows/${showId}/bookings`, { holdId }, {
    headers: { 'Idempotency-Key': idempotencyKey(holdId, storage) },
    safe: true,
    retries: 5,
  });
}

/** Milliseconds between looks at a pending booking; the socket tells sooner as a rule. */
export function lookAgainAfter(attempt) {
  return Math.min(10_000, 500 * 1.6 ** attempt);
}
