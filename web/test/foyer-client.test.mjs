import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FoyerClient, nameOf, newer } from '../js/foyer-client.js';
import { World, answer, settle } from './support.mjs';

const place = (over = {}) => ({ showId: 's', status: 'WAITING', rank: 5, waiting: 9, epoch: 1, version: 10, pollAfterMs: 3000, ...over });

function setUp(answers = {}) {
  const world = new World();
  const asked = [];
  const client = new FoyerClient({
    base: 'https://foyer.test',
    token: () => 'tok',
    fetch: async (url, init) => {
      const what = `${init.method} ${url.replace('https://foyer.test', '')}`;
      asked.push(what);
      assert.equal(init.headers.Authorization, 'Bearer tok');
      return (answers[what] ?? (() => answer(200, { ticket: 't' })))();
    },
    env: world.env(),
  });
  const heard = [];
  for (const name of ['place', 'lost', 'rank', 'admission', 'stats', 'chatmessage', 'link', 'stop', 'hello']) {
    client.addEventListener(name, (event) => heard.push([name, event.detail]));
  }
  const named = (name) => heard.filter(([n]) => n === name).map(([, detail]) => detail);
  const tell = (frame) => world.socket.onmessage({ data: JSON.stringify(frame) });
  return { world, client, asked, named, tell };
}

async function connected(answers) {
  const all = setUp(answers);
  all.client.connect();
  for (let i = 0; i < 5 && !all.world.socket; i++) await settle();
  all.world.socket.onopen({});
  return all;
}

test('a socket is opened with a ticket at the server that was named', async () => {
  const { world, named, asked } = await connected();
  assert.equal(world.socket.url, 'wss://foyer.test/ws?ticket=t');
  assert.deepEqual(asked, ['POST /api/socket-tickets']);
  assert.deepEqual(named('link'), ['connecting', 'live']);
});

test('a place is told by whoever knows of it, and never an older one', async () => {
  const { client, named, tell } = await connected({ 'POST /api/shows/s/admission': () => answer(201, place()) });
  assert.equal((await client.join('s')).rank, 5);
  tell({ event: 'RANK', topic: '/topic/rank/r', showId: 's', epoch: 1, version: 12, rank: 3, waiting: 9, at: 'now' });
  tell({ event: 'ADMISSION', topic: '/topic/admission/r', showId: 's', epoch: 1, version: 14, place: place({ version: 14, status: 'ADMITTED', rank: null }) });
  tell({ event: 'RANK', topic: '/topic/rank/r', showId: 's', epoch: 1, version: 15, rank: 2, waiting: 9, at: 'late' });
  tell({ event: 'HELLO', places: [place({ version: 13 })] });
  assert.deepEqual(named('place').map((p) => [p.status, p.rank]), [['WAITING', 5], ['WAITING', 3], ['ADMITTED', null]]);
  assert.equal(client.places.get('s').status, 'ADMITTED');
  assert.equal(named('rank').length, 2);
});

test('a higher epoch starts anew, and a place that HELLO does not know is lost', async () => {
  const { client, named, tell } = await connected();
  tell({ event: 'HELLO', places: [place({ version: 99 })] });
  tell({ event: 'HELLO', places: [place({ epoch: 2, version: 1, rank: 1 })] });
  assert.equal(client.places.get('s').rank, 1);
  tell({ event: 'HELLO', places: [] });
  assert.deepEqual(named('lost'), [{ showId: 's' }]);
  assert.equal(client.places.size, 0);
});

test('places are polled while no socket opens, at the pace that the server says', async () => {
  const { world, client, asked, named } = setUp({
    'POST /api/shows/s/admission': () => answer(201, place()),
    'GET /api/shows/s/admission': () => answer(200, place({ version: 20, rank: 2, pollAfterMs: 3000 })),
  });
  await client.join('s');
  client.connect();
  for (let i = 0; i < 2; i++) {
    for (let j = 0; j < 5; j++) await settle();
    world.socket.onclose({ code: 1006, reason: '' });
    await world.advance(4000);
  }
  for (let j = 0; j < 5; j++) await settle();
  const polls = () => asked.filter((what) => what.startsWith('GET')).length;
  const before = polls();
  assert.ok(before >= 1);
  assert.equal(named('place').at(-1).rank, 2);
  await world.advance(3100);
  for (let j = 0; j < 5; j++) await settle();
  assert.ok(polls() > before);
});

test('a place that polling does not find is lost, once', async () => {
  const { world, client, named } = setUp({
    'POST /api/shows/s/admission': () => answer(201, place()),
    'GET /api/shows/s/admission': () => answer(404, { code: 'NOT_JOINED' }),
  });
  await client.join('s');
  client.connect();
  for (let i = 0; i < 2; i++) {
    for (let j = 0; j < 5; j++) await settle();
    world.socket.onclose({ code: 1006, reason: '' });
    await world.advance(8000);
  }
  for (let j = 0; j < 5; j++) await settle();
  assert.deepEqual(named('lost'), [{ showId: 's' }]);
});

test('the end that a server asks for is told', async () => {
  const { world, named } = await connected();
  world.socket.onclose({ code: 4501, reason: 'unauthorised' });
  await settle();
  assert.deepEqual(named('stop'), [{ code: 4501, reason: 'unauthorised' }]);
  assert.equal(named('link').at(-1), 'stopped');
});

test('names of events and the order of places', () => {
  assert.equal(nameOf({ event: 'SOLD_OUT' }), 'soldout');
  assert.ok(newer(place(), undefined));
  assert.ok(!newer(place({ version: 9 }), place()));
  assert.ok(newer(place({ epoch: 2, version: 1 }), place()));
});
