// Signing in: by name where the server allows it, else with a token.

import { NoDevSignIn } from '../session.js';
import { byId, line, show, text } from './dom.js';

/** Wires the forms; `done` runs after each sign-in. */
export function wireSignIn(session, done) {
  byId('sign-in-form').addEventListener('submit', async (event) => {
    event.preventDefault();
    byId('sign-in').disabled = true;
    line(byId('problem'), '');
    try {
      await session.signIn(byId('sign-in-name').value);
      await done();
    } catch (err) {
      if (err instanceof NoDevSignIn) offerToken();
      else line(byId('problem'), err.message);
    } finally {
      byId('sign-in').disabled = false;
    }
  });
  byId('token-form').addEventListener('submit', async (event) => {
    event.preventDefault();
    line(byId('problem'), '');
    session.useToken(byId('token').value);
    byId('token').value = '';
    await done();
  });
}

function offerToken() {
  show(byId('sign-in-form'), false);
  show(byId('token-form'), true);
  byId('token').focus();
}

export function renderSignIn(person) {
  show(byId('sign-in-panel'), person === null);
  show(byId('sign-out'), person !== null);
  text(byId('who'), person?.name);
}
