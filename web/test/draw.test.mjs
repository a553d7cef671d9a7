import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';

import { scoreOf } from '../js/draw.js';
import { initial, reduce } from '../js/state.js';

const SEED = 'c0ffee'.padEnd(64, '1');

test('a score is recomputed as the draw makes it', async () => {
  for (const request of ['AAAAAAAAAAAAAAAAAAAAAA', 'abcDEF-_0123456789xyzQ']) {
    const mac = createHmac('sha256', Buffer.from(SEED, 'hex')).update(request).digest();
    assert.equal(await scoreOf(SEED, request), Number(mac.readBigUInt64BE() >> 24n) + 1);
  }
  assert.equal(await scoreOf(SEED, 'A', null), null);
});

test('the proof of a draw stays although frames do not repeat it, and goes with its epoch', () => {
  const show = { id: 's', epoch: 1, phase: 'OPEN' };
  const place = { showId: 's', requestId: 'r', status: 'WAITING', epoch: 1, version: 1, rank: 5 };
  let state = reduce(initial, { type: 'show', show });
  state = reduce(state, { type: 'place', place: { ...place, draw: { score: 7, place: 5 } } });
  state = reduce(state, { type: 'frame', frame: { event: 'ADMISSION', showId: 's', requestId: 'r', epoch: 1, version: 2, place: { ...place, status: 'ADMITTED', version: 2 } } });
  assert.deepEqual(state.place.draw, { score: 7, place: 5 });
  state = reduce(state, { type: 'place', place: { ...place, epoch: 2, version: 1 } });
  assert.equal(state.place.draw, undefined);
});
