import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FrameFilter, Live, MAX_BACKOFF_MS, SILENCE_MS, backoff, closeVerdict, retryWindow } from '../js/live.js';
import { World, settle } from './support.mjs';

function setUp(over = {}) {
  const world = new World();
  const seen = { frames: [], links: [], stops: [], renewals: 0, tickets: 0, polls: 0 };
  const live = new Live({
    url: (ticket) => `ws://x/ws?ticket=${ticket}`,
    ticket: async () => `t${++seen.tickets}`,
    renew: async () => { seen.renewals++; },
    poll: async () => { seen.polls++; return { pollAfterMs: 4000 }; },
    onFrame: (frame) => seen.frames.push(frame),
    onLink: (link) => seen.links.push(link),
    onStop: (code) => seen.stops.push(code),
    ...over,
  }, world.env());
  return { world, seen, live };
}

async function opened(over) {
  const all = setUp(over);
  all.live.start();
  await settle();
  all.world.socket.onopen({});
  return all;
}

test('the pause is random between one second and a ceiling that doubles to thirty', () => {
  assert.equal(backoff(0, () => 0), 1000);
  assert.equal(backoff(0, () => 1), 2000);
  assert.equal(backoff(2, () => 1), 8000);
  assert.equal(backoff(40, () => 1), MAX_BACKOFF_MS);
});

// R41: a client ignored 1012 and 1013 and came back when it liked.
test('close codes say whether, when and with what to come back', () => {
  assert.deepEqual(closeVerdict(1012, 'restart retryMs=1000-20000'), { reconnect: true, window: [1000, 20_000], renew: false });
  assert.deepEqual(retryWindow('restart, retry in 150-200ms'), [150, 200]);
  assert.deepEqual(retryWindow('retry in 1-20 s'), [1000, 20_000]);
  assert.deepEqual(retryWindow('come back within 5s'), [0, 5000]);
  assert.equal(retryWindow('restart'), null);
  assert.equal(retryWindow('retry in 1-999999999 s'), null);
  assert.ok(closeVerdict(1013).window[0] >= 1000);
  assert.equal(closeVerdict(4001).renew, true);
  for (const code of [1006, 4002, 4003, 4005, 4499]) assert.equal(closeVerdict(code).reconnect, true, code);
  for (const code of [1000, 1009, 4500, 4501, 4503, 4999]) assert.equal(closeVerdict(code).reconnect, false, code);
});

test('a socket opens with a ticket, follows topics, and frames come through', async () => {
  const { world, seen, live } = setUp();
  live.follow('/topic/a');
  live.start();
  await settle();
  assert.equal(world.socket.url, 'ws://x/ws?ticket=t1');
  assert.deepEqual(world.socket.protocols, ['foyer.v1']);
  world.socket.onopen({});
  live.follow('/topic/b');
  assert.deepEqual(world.socket.sent.map((f) => f.topic), ['/topic/a', '/topic/b']);
  world.socket.onmessage({ data: '{"event":"HEARTBEAT"}' });
  world.socket.onmessage({ data: 'not json' });
  assert.equal(seen.frames.length, 1);
  assert.deepEqual(seen.links, ['connecting', 'live']);
});

test('topics are followed again after a reconnect, with a new ticket', async () => {
  const { world, live } = await opened();
  live.follow('/topic/a');
  world.socket.onclose({ code: 1006, reason: '' });
  await world.advance(2000);
  assert.equal(world.sockets.length, 2);
  assert.match(world.socket.url, /t2$/);
  world.socket.onopen({});
  assert.deepEqual(world.socket.sent, [{ type: 'subscribe', topic: '/topic/a' }]);
});

// R33: a loop of short connections hammered the server, since each success cleared the memory.
test('the pause grows through short connections and is forgotten after a long one', async () => {
  const { world, live } = await opened();
  const pauses = [];
  for (let i = 0; i < 4; i++) {
    world.socket.onclose({ code: 4005, reason: '' });
    await settle();
    pauses.push(live.lastPause);
    await world.advance(live.lastPause);
    world.socket.onopen({});
  }
  assert.ok(pauses[3] > pauses[0] * 3, pauses.join());
  for (let i = 0; i < 8; i++) {
    world.socket.onmessage({ data: '{"event":"HEARTBEAT"}' });
    await world.advance(5000);
  }
  world.socket.onclose({ code: 4005, reason: '' });
  await settle();
  assert.equal(live.lastPause, pauses[0]);
});

test('the window of a restart is kept to', async () => {
  const { world, live } = await opened();
  world.socket.onclose({ code: 1012, reason: 'restart retryMs=8000-10000' });
  await settle();
  assert.equal(live.lastPause, 9000);
});

// R48: a client came back with the dead token, again and again.
test('an expired token is renewed before coming back', async () => {
  const { world, seen } = await opened();
  world.socket.onclose({ code: 4001, reason: 'token expired' });
  await settle();
  assert.equal(seen.renewals, 1);
});

test('a final code ends it', async () => {
  const { world, seen } = await opened();
  world.socket.onclose({ code: 4501, reason: 'unauthorised' });
  await world.advance(600_000);
  assert.equal(world.sockets.length, 1);
  assert.deepEqual(seen.stops, [4501]);
  assert.equal(seen.links.at(-1), 'stopped');
});

test('after two failed opens it polls as the server says, and still tries the socket', async () => {
  const { world, seen, live } = setUp();
  live.start();
  await settle();
  world.socket.onclose({ code: 1006, reason: '' });
  assert.equal(seen.polls, 0);
  await world.advance(2000);
  world.socket.onclose({ code: 1006, reason: '' });
  await settle();
  assert.equal(seen.links.at(-1), 'polling');
  assert.equal(seen.polls, 1);
  await world.advance(8000);
  assert.equal(seen.polls, 3);
  await world.advance(40_000);
  assert.equal(world.sockets.length, 3);
  world.socket.onopen({});
  const polls = seen.polls;
  await world.advance(20_000);
  assert.equal(seen.polls, polls, 'polling ends with the socket open');
  assert.equal(seen.links.at(-1), 'live');
});

test('polling that fails says so, and polling that works again too', async () => {
  let broken = true;
  const { world, seen, live } = setUp({
    ticket: async () => { throw new Error('down'); },
    poll: async () => { if (broken) throw new Error('down'); return { pollAfterMs: 2000 }; },
  });
  live.start();
  await world.advance(4000);
  assert.equal(seen.links.at(-1), 'offline');
  broken = false;
  await world.advance(6000);
  assert.equal(seen.links.at(-1), 'polling');
});

test('tickets that cannot be had count as failed opens, and a refusal is final', async () => {
  const { world, seen, live } = setUp({ ticket: async () => { throw Object.assign(new Error('no'), { status: 503 }); } });
  live.start();
  await world.advance(3000);
  assert.equal(seen.links.at(-1), 'polling');
  const refused = setUp({ ticket: async () => { throw Object.assign(new Error('no'), { status: 401 }); } });
  refused.live.start();
  await settle();
  assert.deepEqual(refused.seen.stops, [4501]);
});

// R55: timers of a hidden tab run once a minute, and every heartbeat looked missed.
test('silence is judged by timestamps, and mildly in a hidden tab', async () => {
  const { world } = await opened();
  await world.advance(SILENCE_MS - 5000);
  assert.equal(world.socket.closed, false);
  await world.advance(15_000);
  assert.equal(world.sockets[0].closed, true);

  const hidden = await opened();
  hidden.world.hiddenTab = true;
  await hidden.world.advance(SILENCE_MS * 2);
  assert.equal(hidden.world.socket.closed, false);
  hidden.live.check(); // shown again
  assert.equal(hidden.world.sockets[0].closed, true);
});

test('the network being back is acted on at once', async () => {
  const { world, live } = await opened();
  world.socket.onclose({ code: 1006, reason: '' });
  live.check();
  await settle();
  assert.equal(world.sockets.length, 2);
});

// R43: leaving while connecting left sockets dialling, a herd of dead ones.
test('stopping closes a socket that is still being opened, and leaves no timer', async () => {
  const { world, live } = setUp();
  live.start();
  await settle();
  live.stop();
  live.stop();
  assert.equal(world.socket.closed, true);
  assert.equal(world.pending, 0);
  await world.advance(600_000);
  assert.equal(world.sockets.length, 1);
});

test('stopping while the ticket is on its way opens nothing', async () => {
  const { world, live } = setUp();
  live.start();
  live.stop();
  await settle();
  assert.equal(world.sockets.length, 0);
});

test('an open that hangs is given up', async () => {
  const { world, live } = setUp();
  live.start();
  await world.advance(15_000);
  assert.equal(world.sockets[0].closed, true);
  assert.equal(world.sockets.length, 2);
  live.stop();
});

test('many frames at once stay within the rate of the server', async () => {
  const { world, live } = await opened();
  for (let i = 0; i < 20; i++) live.follow(`/topic/${i}`);
  assert.ok(world.socket.sent.length <= 10, `${world.socket.sent.length} at once`);
  await world.advance(1000);
  assert.ok(world.socket.sent.length <= 15);
  await world.advance(10_000);
  assert.equal(world.socket.sent.length, 20);
});

test('of one topic only newer frames pass, and a new epoch starts afresh', () => {
  const filter = new FrameFilter();
  const f = (version, epoch = 1, event = 'RANK') => ({ event, topic: '/topic/rank/r', showId: 's', epoch, version });
  assert.equal(filter.accept(f(5)), true);
  assert.equal(filter.accept(f(4)), false);
  assert.equal(filter.accept(f(5)), true);
  assert.equal(filter.accept(f(1, 2)), true);
  assert.equal(filter.accept(f(9, 1)), false);
  assert.equal(filter.accept({ ...f(1), topic: '/topic/rank/other' }), true);
  assert.equal(filter.accept(f(1, 1, 'SEATS')), true, 'seats have an order of their own');
});
