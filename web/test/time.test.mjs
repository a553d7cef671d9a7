import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HOLD_MARGIN_MS, ServerClock, shownHoldDeadline } from '../js/time.js';

const at = (ms) => new Date(Date.UTC(2030, 0, 1) + ms).toISOString();

test('a countdown runs on the server\'s clock however wrong the own one is', () => {
  let local = 5000; // hours away from the server's, and it does not matter
  const clock = new ServerClock(() => local);
  clock.sample(at(0), 4900, 5100);
  assert.equal(clock.now(), Date.parse(at(0)));
  local += 30_000;
  assert.equal(clock.until(at(60_000)), 30_000);
  assert.equal(clock.until(at(1000)), 0, 'never negative');
  assert.equal(clock.until(null), null);
});

test('the narrowest sample wins, and a coarse one does not spoil it', () => {
  let local = 0;
  const clock = new ServerClock(() => local);
  clock.sample(at(0), 0, 0, 1000); // the Date header, good to a second
  assert.equal(clock.now() - Date.parse(at(0)), 500);
  clock.sample(at(300), 0, 20);
  local = 20;
  assert.equal(clock.now() - Date.parse(at(0)), 310);
  clock.sample(at(0), 0, 800, 1000);
  assert.equal(clock.now() - Date.parse(at(0)), 310);
});

test('after the machine slept the contradiction is believed', () => {
  let local = 0;
  const clock = new ServerClock(() => local);
  clock.sample(at(0), 0, 10);
  local = 1000; // an hour has passed on the server
  clock.sample(at(3_600_000), 900, 1000);
  assert.equal(clock.now(), Date.parse(at(3_600_050)));
});

test('nonsense instead of a time changes nothing', () => {
  const clock = new ServerClock(() => 0);
  clock.sample('soon', 0, 1);
  assert.equal(clock.known, false);
});

// B11: a click in the last second came too late for the server and lost the seats.
test('the shown deadline of a hold lies before the server\'s', () => {
  const hold = { serverTime: at(0), expiresAt: at(300_000) };
  assert.equal(Date.parse(hold.expiresAt) - Date.parse(shownHoldDeadline(hold)), HOLD_MARGIN_MS);
  const short = { serverTime: at(0), expiresAt: at(8000) };
  assert.equal(Date.parse(short.expiresAt) - Date.parse(shownHoldDeadline(short)), 2000);
});
