// A page of the source design, with the STOMP client that such pages use, against
// the real server: from joining to the turn, over the topics as they were there.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { Client, Versions } from '@stomp/stompjs';
import { WebSocket } from 'ws'; // not every node has one of its own

const root = new URL('../../..', import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), 'foyer-stomp-'));
let server;
let base;

before(async () => {
  const binary = join(folder, 'foyer');
  execFileSync('go', ['build', '-o', binary, './cmd/foyer'], { cwd: root, stdio: 'inherit' });
  server = spawn(binary, ['dev', '--http-addr', '127.0.0.1:0', '--database-url', `sqlite:${join(folder, 'foyer.db')}`], { cwd: folder });
  base = await new Promise((resolve, reject) => {
    server.once('exit', (code) => reject(new Error(`the server ended with ${code}`)));
    server.stderr.resume();
    createInterface({ input: server.stdout }).on('line', (line) => {
      const found = /listening on (http:\S+)/.exec(line);
      if (found) resolve(found[1]);
    });
  });
});

after(async () => {
  const ended = new Promise((resolve) => { server.once('exit', resolve); });
  server.kill('SIGTERM');
  await ended;
  rmSync(folder, { recursive: true });
});

async function ask(method, path, token, body) {
  const response = await fetch(base + path, {
    method,
    headers: { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) },
    body: body && JSON.stringify(body),
  });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return text ? JSON.parse(text) : null;
}

const tokenOf = async (sub, roles = []) => (await ask('POST', '/api/dev/token', null, { sub, roles })).token;

async function newShow(edit = {}) {
  const show = {
    title: 'Night', opensAt: new Date(Date.now() - 60_000).toISOString(), queue: { maxActive: 1 },
    seating: { sections: [{ name: 'A', rows: 1, seatsPerRow: 5, price: 1 }] }, ...edit,
  };
  return (await ask('POST', '/api/shows', await tokenOf('boss', ['operator']), show)).id;
}

/** A connected client, and the frames that its subscriptions got. */
async function connect(token, hooks = {}) {
  const client = new Client({
    connectHeaders: token ? { Authorization: `Bearer ${token}` } : {},
    webSocketFactory: () => new WebSocket(`${base.replace('http', 'ws')}/ws`, ['v12.stomp', 'v11.stomp', 'v10.stomp']),
    reconnectDelay: 0, heartbeatIncoming: 10_000, heartbeatOutgoing: 10_000, ...hooks,
  });
  const heard = [];
  const waiting = [];
  client.hear = (destination) => client.subscribe(destination, (message) => {
    heard.push({ destination: message.headers.destination, ...JSON.parse(message.body) });
    for (const look of [...waiting]) look();
  });
  /** The first frame heard so far or from now on that ok agrees to. */
  client.until = (ok) => new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`never heard; heard: ${JSON.stringify(heard)}`)), 15_000);
    const look = () => {
      const found = heard.find(ok);
      if (!found) return;
      clearTimeout(late);
      waiting.splice(waiting.indexOf(look), 1);
      resolve(found);
    };
    waiting.push(look);
    look();
  });
  const connected = new Promise((resolve, reject) => {
    client.onConnect = resolve;
    client.onStompError = (frame) => reject(new Error(frame.headers.message));
  });
  client.activate();
  await connected;
  return client;
}

test('a page walks from joining to its turn over the topics of the source design', { timeout: 60_000 }, async () => {
  const show = await newShow();
  const first = await tokenOf('first');
  await ask('POST', `/api/shows/${show}/admission`, first, {});
  const ann = await tokenOf('ann');
  const client = await connect(ann);
  assert.equal(client.connectedVersion, '1.2');
  const queue = `/topic/queue/${show}/ann`;
  client.hear(queue);
  client.hear(`/topic/stats/movie/${show}`);
  client.hear(`/topic/soldout/movie/${show}`);
  client.publish({ destination: '/app/addQueue', body: JSON.stringify({ scheduleId: show }) });
  const place = await client.until((f) => f.event === 'ADMISSION');
  assert.equal(place.destination, queue);
  assert.equal(place.status, 'WAITING');
  assert.equal(place.place.rank, 1);
  client.hear(`/topic/admission/${place.requestId}`);
  client.hear(`/topic/rank/${place.requestId}`);
  await client.until((f) => f.event === 'RANK' && f.destination === `/topic/rank/${place.requestId}` && f.rank === 1);
  await client.until((f) => f.event === 'STATS' && f.destination === `/topic/stats/movie/${show}` && f.waiting === 1);
  await ask('DELETE', `/api/shows/${show}/admission`, first);
  for (const destination of [queue, `/topic/admission/${place.requestId}`]) {
    const turn = await client.until((f) => f.destination === destination && f.status === 'ADMITTED');
    assert.ok(Date.parse(turn.claimBy) > Date.now());
  }
  const done = new Promise((resolve) => { client.watchForReceipt('claimed', resolve); });
  client.publish({ destination: '/app/claim', body: JSON.stringify({ showId: show }), headers: { receipt: 'claimed' } });
  await done;
  await client.until((f) => f.status === 'ACTIVE' && f.place.pass);
  await client.deactivate();
});

test('a page without a good token is told so and closed for good', { timeout: 30_000 }, async () => {
  for (const token of [null, 'nonsense']) {
    let code;
    const closed = new Promise((resolve) => {
      connect(token, { onWebSocketClose: (event) => { code = event.code; resolve(); } }).catch((err) => assert.match(err.message, /UNAUTHORIZED/));
    });
    await closed;
    assert.equal(code, 4501);
  }
});

test("somebody else's queue is refused, and a topic takes no message", { timeout: 30_000 }, async () => {
  const show = await newShow();
  const ask = [
    (client) => client.hear(`/topic/queue/${show}/bob`),
    (client) => client.publish({ destination: `/topic/stats/movie/${show}`, body: '{}' }),
  ];
  for (const forbidden of ask) {
    const client = await connect(await tokenOf('ann'));
    const refused = new Promise((resolve) => { client.onStompError = resolve; });
    forbidden(client);
    assert.equal((await refused).headers.message, 'FORBIDDEN');
    await client.deactivate();
  }
});

test('a refusal can be heard without the end of the connection', { timeout: 30_000 }, async () => {
  const show = await newShow({ opensAt: new Date(Date.now() + 3_600_000).toISOString() });
  const client = await connect(await tokenOf('ann'));
  client.hear('/user/queue/errors');
  client.publish({ destination: '/app/addQueue', body: JSON.stringify({ showId: show }) });
  assert.equal((await client.until((f) => f.event === 'ERROR')).code, 'NOT_OPEN');
  assert.ok(client.connected);
  await client.deactivate();
});

test('an old page walks in STOMP 1.0', { timeout: 30_000 }, async () => {
  const show = await newShow();
  const client = await connect(await tokenOf('old'), {
    stompVersions: new Versions(['1.0']), webSocketFactory: () => new WebSocket(`${base.replace('http', 'ws')}/ws`, ['v10.stomp']),
  });
  assert.equal(client.connectedVersion, '1.0');
  const queue = `/topic/queue/${show}/old`;
  client.hear(queue);
  client.publish({ destination: '/app/addQueue', body: JSON.stringify({ movieId: show }) });
  assert.equal((await client.until((f) => f.event === 'ADMISSION')).destination, queue);
  await client.deactivate();
});

test('frames come in pieces where the client cuts them, at the address of STOMP', { timeout: 30_000 }, async () => {
  const show = await newShow();
  const client = await connect(await tokenOf('pieces'), {
    splitLargeFrames: true, maxWebSocketChunkSize: 128,
    webSocketFactory: () => new WebSocket(`${base.replace('http', 'ws')}/stomp`),
  });
  const done = new Promise((resolve) => { client.watchForReceipt('joined', resolve); });
  client.publish({ destination: '/app/addQueue', body: JSON.stringify({ showId: show, why: 'a body longer than one piece '.repeat(9) }), headers: { receipt: 'joined' } });
  await done;
  await client.deactivate();
});

test('heart-beats go both ways', { timeout: 30_000 }, async () => {
  const said = [];
  const sent = [];
  let beat;
  const came = new Promise((resolve) => { beat = resolve; });
  const client = await connect(await tokenOf('beating'), {
    heartbeatIncoming: 1000, heartbeatOutgoing: 1000, debug: (line) => said.push(line),
    webSocketFactory: () => {
      const socket = new WebSocket(`${base.replace('http', 'ws')}/ws`, ['v12.stomp']);
      const send = socket.send.bind(socket);
      socket.send = (data, ...more) => { sent.push(String(data)); send(data, ...more); };
      socket.on('message', (data) => { if (String(data) === '\n') beat(); });
      return socket;
    },
  });
  await came;
  assert.ok(said.some((line) => line.includes('every 10000ms')), 'it is asked for a beat every 10 s');
  const start = Date.now();
  while (!sent.includes('\n') && Date.now() - start < 15_000) await new Promise((resolve) => { setTimeout(resolve, 100); });
  assert.ok(sent.includes('\n'));
  assert.ok(client.connected);
  await client.deactivate();
});
