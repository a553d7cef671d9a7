// The show itself: title, phase, availability and the operator's message.

import { availabilityText, phaseName, when } from '../text.js';
import { byId, line, text } from './dom.js';

const PHASE_TONES = { OPEN: 'good', PREQUEUE: '', PAUSED: 'warn', SOLD_OUT: 'bad', CLOSED: 'bad' };
const SEAT_TONES = { AVAILABLE: 'good', ALL_HELD: 'warn', SOLD_OUT: 'bad' };

/** Phase and availability as two labels; a phase that says it all stands alone. */
export function paintPhase(phase, availability, sale) {
  text(phase, phaseName(sale.phase));
  phase.dataset.tone = PHASE_TONES[sale.phase] ?? '';
  phase.dataset.phase = sale.phase;
  const seated = sale.capacity > 0 && !['SOLD_OUT', 'CLOSED', 'SCHEDULED'].includes(sale.phase);
  text(availability, seated ? availabilityText(sale.availability) : '');
  availability.dataset.tone = SEAT_TONES[sale.availability] ?? '';
  availability.dataset.availability = sale.availability ?? '';
}

export function renderShowHead({ show: sale }) {
  if (!sale) return;
  text(byId('title'), sale.title);
  text(byId('venue'), sale.venue);
  text(byId('starts-at'), sale.startsAt ? `${sale.venue ? '· ' : ''}${when(sale.startsAt)}` : '');
  paintPhase(byId('phase'), byId('availability'), sale);
  line(byId('message'), sale.message);
}

const LINKS = { connecting: 'Connecting…', live: 'Live', polling: 'Checking now and then', offline: 'No connection', stopped: 'Not connected', off: '' };

export function renderLink({ link }) {
  text(byId('link'), LINKS[link]);
  byId('link').dataset.link = link;
}
