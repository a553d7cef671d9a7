import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Api, ApiError, OfflineError, at, retryAfter } from '../js/api.js';
import { NoDevSignIn, Session, claims, subjectOf } from '../js/session.js';
import { answer, storage } from './support.mjs';

/** An Api over a script of answers; it notes calls and pauses. */
function scripted(script, session = null, clock = null) {
  const calls = [], pauses = [];
  const fetch = async (path, init) => {
    calls.push({ path, ...init });
    const next = script.shift();
    if (next instanceof Error) throw next;
    return next;
  };
  return { calls, pauses, api: new Api({ session, clock, fetch, sleep: async (ms) => { pauses.push(ms); }, random: () => 0 }) };
}

test('a problem becomes an error with its code and details', async () => {
  const { api } = scripted([answer(409, { code: 'SEAT_UNAVAILABLE', detail: 'gone', conflicts: ['A-1-1'] })]);
  await assert.rejects(api.post('/x', {}), (err) => err instanceof ApiError && err.code === 'SEAT_UNAVAILABLE' &&
    err.status === 409 && err.message === 'gone' && err.problem.conflicts[0] === 'A-1-1');
});

test('an answer that is no JSON is still an error that can be read', async () => {
  const { api } = scripted([new Response('<html>', { status: 502 })]);
  await assert.rejects(api.get('/x'), /502/);
});

test('503 with Retry-After is tried again when asked to, also for a POST', async () => {
  const { api, calls, pauses } = scripted([answer(503, {}, { 'Retry-After': '2' }), answer(201, { ok: true })]);
  assert.deepEqual(await api.post('/x', { a: 1 }), { ok: true });
  assert.equal(calls.length, 2);
  assert.deepEqual(pauses, [2000]);
});

test('503 without Retry-After, and too many retries, are told', async () => {
  await assert.rejects(scripted([answer(503, {})]).api.get('/x'), { status: 503 });
  const busy = () => answer(503, {}, { 'Retry-After': '1' });
  await assert.rejects(scripted([busy(), busy(), busy(), busy()]).api.get('/x'), { status: 503 });
});

// A POST whose answer was lost may have been done: repeating it blindly does it twice.
test('a lost connection repeats a GET and not a POST, unless it is said to be safe', async () => {
  const lost = () => new TypeError('network');
  assert.deepEqual(await scripted([lost(), answer(200, { a: 1 })]).api.get('/x'), { a: 1 });
  await assert.rejects(scripted([lost(), answer(200, {})]).api.post('/x'), OfflineError);
  assert.deepEqual(await scripted([lost(), answer(200, { a: 1 })]).api.post('/x', undefined, { safe: true }), { a: 1 });
});

// G6: the same key twice at once; the second is asked to come again.
test('IN_PROGRESS waits as told and asks again', async () => {
  const { api, pauses } = scripted([answer(409, { code: 'IN_PROGRESS' }, { 'Retry-After': '1' }), answer(202, { status: 'PENDING' })]);
  assert.equal((await api.post('/x')).status, 'PENDING');
  assert.deepEqual(pauses, [1000]);
});

test('401 renews the token once', async () => {
  let token = 'old', renewals = 0;
  const session = { token: () => token, refresh: async () => { renewals++; token = 'new'; return true; } };
  const { api, calls } = scripted([answer(401, {}), answer(200, { a: 1 }), answer(401, {}), answer(401, {})], session);
  await api.get('/x');
  assert.deepEqual(calls.map((c) => c.headers.Authorization), ['Bearer old', 'Bearer new']);
  await assert.rejects(api.get('/x'), { status: 401 });
  assert.equal(renewals, 2, 'never in a loop');
});

test('every answer teaches the clock', async () => {
  const samples = [];
  const clock = { mark: () => 7, sample: (...s) => samples.push(s) };
  const { api } = scripted([answer(200, { serverTime: 'T' }), answer(204, undefined, { Date: 'D' })], null, clock);
  await api.get('/x');
  await api.delete('/x');
  assert.deepEqual(samples, [['T', 7], ['D', 7, undefined, 1000]]);
});

test('Retry-After in both forms, and paths with odd ids', () => {
  assert.equal(retryAfter('3'), 3000);
  assert.equal(retryAfter(new Date(5000).toUTCString(), 2000), 3000);
  assert.equal(retryAfter(null), null);
  assert.equal(retryAfter('soon'), null);
  assert.equal(at`/api/shows/${'a/b'}/holds/${'c?'}`, '/api/shows/a%2Fb/holds/c%3F');
});

const jwt = (payload) => `x.${Buffer.from(JSON.stringify(payload)).toString('base64url')}.y`;

test('signing in by name keeps what is needed to renew', async () => {
  const { api, calls } = scripted([answer(200, { token: jwt({ sub: 'ada-l', name: 'Ada Ł' }) }), answer(200, { token: 'second' })]);
  const session = new Session({ storage: storage(), api });
  await session.signIn(' Ada  L ');
  assert.deepEqual(JSON.parse(calls[0].body), { sub: 'ada-l', name: 'Ada  L', roles: [] });
  assert.deepEqual(session.person(), { id: 'ada-l', name: 'Ada Ł' });
  assert.deepEqual(await Promise.all([session.refresh(), session.refresh()]), [true, true]);
  assert.equal(calls.length, 2, 'two calls that fail together renew once');
  assert.equal(session.token(), 'second');
  session.signOut();
  assert.equal(session.person(), null);
});

test('where there is no sign-in by name, that is told apart from a failure', async () => {
  const session = new Session({ storage: storage(), api: scripted([answer(404, {}), answer(503, {})]).api });
  await assert.rejects(session.signIn('a'), NoDevSignIn);
  await assert.rejects(session.signIn('a'), { status: 503 });
});

// R51: a token in an address ends in logs and histories.
test('a token in the fragment is taken, and taken out of the address', async () => {
  const session = new Session({ storage: storage(), api: scripted([]).api });
  const replaced = [];
  assert.equal(session.adoptFragment({ hash: '#token=a.b.c', pathname: '/show.html', search: '?show=s' }, { replaceState: (...a) => replaced.push(a[2]) }), true);
  assert.equal(session.token(), 'a.b.c');
  assert.deepEqual(replaced, ['/show.html?show=s']);
  assert.equal(session.adoptFragment({ hash: '' }, {}), false);
  assert.equal(await session.refresh(), false, 'a foreign token cannot be renewed here');
});

test('claims of nonsense are empty, and a name makes a subject', () => {
  assert.deepEqual(claims('nonsense'), {});
  assert.equal(subjectOf(' Grace Hopper '), 'grace-hopper');
});
