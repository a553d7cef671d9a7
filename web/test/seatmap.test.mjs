import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SeatMap, moveFocus, sectionOf } from '../js/seatmap.js';

const seat = (id, state) => ({ id, state });

function loaded() {
  const map = new SeatMap();
  map.load({ epoch: 1, version: 10, seats: [seat('A-1-1', 'SOLD'), seat('A-1-2', 'HELD'), seat('A-1-3', 'FREE')] });
  return map;
}

test('a whole answer says of every seat what it is', () => {
  const map = loaded();
  assert.equal(map.state('A-1-1'), 'SOLD');
  assert.equal(map.state('A-9-9'), 'FREE');
  const changed = map.load({ epoch: 1, version: 11, seats: [seat('A-1-1', 'SOLD')] });
  assert.deepEqual(changed, ['A-1-2'], 'what is not listed is free');
  assert.deepEqual(map.load({ epoch: 1, version: 5, seats: [seat('A-1-4', 'SOLD')] }), [], 'an older answer is dropped');
});

test('a pushed change that joins on is applied, a repeated one is harmless', () => {
  const map = loaded();
  assert.deepEqual(map.push({ epoch: 1, version: 11, seats: [seat('A-1-3', 'HELD')] }), ['A-1-3']);
  assert.deepEqual(map.push({ epoch: 1, version: 11, seats: [seat('A-1-3', 'HELD')] }), []);
  assert.equal(map.version, 11);
  assert.equal(map.behind, false);
});

// I2: changes from two places were applied in the order of arrival and counts diverged.
test('changes out of order end in the newest state', () => {
  const map = loaded();
  map.push({ epoch: 1, version: 12, seats: [seat('A-1-3', 'FREE')] });
  assert.equal(map.behind, true, 'eleven is missing');
  assert.equal(map.version, 10);
  map.push({ epoch: 1, version: 11, seats: [seat('A-1-3', 'HELD')] });
  assert.equal(map.state('A-1-3'), 'FREE');
  assert.equal(map.version, 12);
  assert.equal(map.behind, false);
});

test('a gap is closed by reading again', () => {
  const map = loaded();
  map.push({ epoch: 1, version: 15, seats: [seat('A-1-5', 'SOLD')] });
  map.merge({ epoch: 1, version: 14, seats: [seat('A-1-5', 'HELD'), seat('A-1-6', 'HELD')] });
  assert.equal(map.state('A-1-5'), 'SOLD', 'the pushed state is newer than the answer');
  assert.equal(map.state('A-1-6'), 'HELD');
  assert.equal(map.version, 15, 'fifteen joins on to fourteen');
  assert.equal(map.behind, false);
});

test('a delta that the server merged bridges many versions', () => {
  const map = loaded();
  map.push({ epoch: 1, since: 8, version: 14, seats: [seat('A-1-2', 'SOLD')] });
  assert.equal(map.version, 14);
  assert.equal(map.behind, false);
  map.push({ epoch: 1, since: 16, version: 20, seats: [seat('A-1-4', 'HELD')] });
  assert.equal(map.behind, true);
  map.push({ epoch: 1, since: 0, version: 21, seats: [seat('A-1-4', 'SOLD')] });
  assert.equal(map.version, 21);
  assert.equal(map.state('A-1-2'), 'FREE', 'a whole map replaces all');
});

test('a new epoch empties the map and leaves it behind', () => {
  const map = loaded();
  const changed = map.push({ epoch: 2, version: 3, seats: [seat('A-1-2', 'HELD')] });
  assert.ok(changed.includes('A-1-1'));
  assert.equal(map.state('A-1-1'), 'FREE');
  assert.equal(map.behind, true);
  assert.deepEqual(map.push({ epoch: 1, version: 99, seats: [seat('A-1-1', 'SOLD')] }), []);
});

test('a section knows how many of its seats are free', () => {
  const map = loaded();
  assert.deepEqual(map.tally('A', 20), { free: 18, held: 1, sold: 1 });
  assert.equal(sectionOf('Upper-Ring-3-12'), 'Upper-Ring');
});

test('arrow keys move within the rows shown', () => {
  const block = { firstRow: 2, lastRow: 4, seatsPerRow: 5 };
  const from = { row: 2, number: 1 };
  assert.deepEqual(moveFocus('ArrowRight', false, from, block), { row: 2, number: 2 });
  assert.deepEqual(moveFocus('ArrowLeft', false, from, block), from);
  assert.deepEqual(moveFocus('ArrowUp', false, from, block), from);
  assert.deepEqual(moveFocus('End', true, from, block), { row: 4, number: 5 });
  assert.equal(moveFocus('a', false, from, block), null);
});
