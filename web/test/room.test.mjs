import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Api } from '../js/api.js';
import { FoyerClient } from '../js/foyer-client.js';
import { Room } from '../js/room.js';
import { World, answer, settle } from './support.mjs';

const sale = { id: 's', title: 'Night', phase: 'OPEN', epoch: 1, seating: { seatLimit: 4, sections: [] }, queue: { graceSeconds: 60 } };
const place = (over = {}) => ({ showId: 's', requestId: 'r', status: 'WAITING', rank: 2, waiting: 2, epoch: 1, version: 10, pollAfterMs: 3000, ...over });

/** A room on a client whose socket and answers are ours. */
async function setUp(answers = {}) {
  const world = new World();
  const asked = [];
  const session = { token: () => 'tok', refresh: async () => false };
  const fetch = async (url, init) => {
    const what = `${init.method} ${url}`;
    asked.push(what);
    return ({
      'POST /api/socket-tickets': () => answer(200, { ticket: 't' }),
      'GET /api/shows/s': () => answer(200, sale),
      'GET /api/shows/s/admission': () => answer(200, place()),
      'GET /api/bookings?limit=50': () => answer(200, { bookings: [] }),
      ...answers,
    }[what] ?? (() => answer(404, { code: 'NOT_FOUND' })))();
  };
  const api = new Api({ session, fetch });
  const client = new FoyerClient({ base: 'https://foyer.test', api, env: world.env() });
  const room = new Room({ api, session, showId: 's', client, onChange: () => {}, hidden: () => world.hiddenTab });
  await room.readShow();
  await room.enter();
  for (let i = 0; i < 20 && !world.socket; i++) await turn();
  world.socket.onopen({});
  const tell = (frame) => world.socket.onmessage({ data: JSON.stringify(frame) });
  tell({ event: 'HELLO', epoch: 1, places: [place()] });
  const admit = () => tell({ event: 'ADMISSION', topic: '/topic/admission/r', showId: 's', requestId: 'r', epoch: 1, version: 14, place: place({ version: 14, status: 'ADMITTED', rank: null }) });
  return { world, room, client, asked, tell, admit, claims: () => asked.filter((what) => what === 'POST /api/shows/s/admission/claim').length };
}

const turn = async () => {
  await settle();
  await new Promise((resolve) => { setImmediate(resolve); });
};

const active = () => answer(200, place({ version: 15, status: 'ACTIVE', rank: null, expiresAt: '2030-01-01T00:00:00Z' }));

test('the first sign of life takes the turn, and takes it once', async () => {
  const { room, admit, claims } = await setUp({ 'POST /api/shows/s/admission/claim': active });
  room.sign();
  assert.equal(claims(), 0, 'whoever waits has no turn to take');
  admit();
  assert.equal(claims(), 0, 'a turn is not taken for somebody who is away');
  room.sign();
  room.sign();
  await turn();
  await turn();
  assert.equal(room.state.place.status, 'ACTIVE');
  room.sign();
  assert.equal(claims(), 1);
  room.close();
});

test('nothing on a hidden page is a sign of life', async () => {
  const { world, room, admit, claims } = await setUp({ 'POST /api/shows/s/admission/claim': active });
  world.hiddenTab = true;
  admit();
  room.sign();
  await turn();
  assert.equal(claims(), 0);
  world.hiddenTab = false;
  room.sign();
  assert.equal(claims(), 1);
  await turn();
  room.close();
});

test('a claim that was refused is not repeated with every move of the pointer', async () => {
  const { room, admit, claims } = await setUp({ 'POST /api/shows/s/admission/claim': () => answer(409, { code: 'NOT_ADMITTED' }) });
  admit();
  for (let i = 0; i < 20; i++) {
    room.sign();
    await turn();
  }
  assert.equal(claims(), 1);
  room.close();
});

test('while no socket opens the place is polled, and one that is gone is told', async () => {
  let there = true;
  const { world, room } = await setUp({
    'GET /api/shows/s/admission': () => (there ? answer(200, place({ version: 20, rank: 1 })) : answer(404, { code: 'NOT_FOUND' })),
  });
  world.socket.onclose({ code: 1006, reason: '' });
  for (let i = 0; i < 3; i++) {
    await world.advance(10_000);
    for (let j = 0; j < 10; j++) await turn();
    world.socket.onclose?.({ code: 1006, reason: '' });
  }
  for (let j = 0; j < 10; j++) await turn();
  assert.equal(room.state.link, 'polling');
  assert.equal(room.state.shownRank, 1);
  there = false;
  await world.advance(4000);
  for (let j = 0; j < 10; j++) await turn();
  assert.equal(room.state.place, null);
  room.close();
});

test('who signs in next finds nothing of who was here', async () => {
  const { room, client } = await setUp();
  assert.equal(client.places.size, 1);
  room.signedOut();
  assert.equal(client.places.size, 0);
  assert.equal(room.state.place, null);
});
