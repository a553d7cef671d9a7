// Seats picked and held, and the booking that is made of them.

import { shownHoldDeadline } from '../time.js';
import { plural, price, seatList } from '../text.js';
import { byId, el, line, show, text } from './dom.js';

export class BasketView {
  #room; #countdowns;

  constructor(room, countdowns) {
    this.#room = room;
    this.#countdowns = countdowns;
    byId('hold').addEventListener('click', () => room.holdPicked());
    byId('book').addEventListener('click', () => room.book());
    byId('extend').addEventListener('click', () => room.extend());
    byId('release').addEventListener('click', () => room.release());
    byId('clear').addEventListener('click', () => room.resetPick());
    byId('booking-close').addEventListener('click', () => room.bookingSeen());
  }

  render() {
    this.#basket();
    this.#booking();
  }

  #basket() {
    const { state, picked, busy } = this.#room;
    const { hold, booking } = state;
    const pending = booking?.status === 'PENDING';
    show(byId('basket'), state.place?.status === 'ACTIVE' && (state.show?.seating.sections.length ?? 0) > 0);
    show(byId('hold-clock'), hold !== null && !pending);
    const end = hold && !pending ? shownHoldDeadline(hold) : null;
    this.#countdowns.set(byId('hold-countdown'), end, { name: 'Your seats', over: () => this.#room.deadline('hold') });
    line(byId('hold-seats'), hold ? `${seatList(hold.seats)} – ${price(hold.price)}` : '');
    const wanted = [...picked].sort();
    const changed = hold ? wanted.join() !== [...hold.seats].sort().join() : wanted.length > 0;
    text(byId('selection-text'), selectionText(hold, wanted, changed));
    show(byId('hold'), changed && wanted.length > 0 && !pending);
    text(byId('hold'), hold ? `Change to ${plural(wanted.length, 'seat')}: ${seatList(wanted)}` : `Hold ${plural(wanted.length, 'seat')}`);
    byId('hold').classList.toggle('primary', !hold || changed);
    show(byId('book'), hold !== null && !changed && !pending);
    text(byId('book'), hold ? `Book ${plural(hold.seats.length, 'seat')} for ${price(hold.price)}` : '');
    const more = hold !== null && Date.parse(hold.ceilingAt) > Date.parse(hold.expiresAt);
    show(byId('extend'), more && !pending);
    show(byId('release'), hold !== null && !pending);
    show(byId('clear'), changed && !pending);
    text(byId('clear'), hold ? 'Undo changes' : 'Clear selection');
    for (const id of ['hold', 'book', 'extend', 'release', 'clear']) byId(id).disabled = busy !== '';
    this.#others(state.otherHolds, busy);
  }

  #others(holds, busy) {
    const element = byId('other-holds');
    show(element, holds.length > 0);
    const wanted = JSON.stringify([holds.map((h) => h.holdId), busy]);
    if (element.dataset.shown === wanted) return;
    element.dataset.shown = wanted;
    element.replaceChildren('Also held for you, from another tab: ', ...holds.map((h) => el('span', {}, `${seatList(h.seats)} `,
      el('button', { type: 'button', disabled: busy !== '', onclick: () => this.#room.release(h.holdId) }, `Release ${seatList(h.seats)}`), ' ')));
  }

  #booking() {
    const { booking, place } = this.#room.state;
    show(byId('booking'), booking !== null);
    byId('booking-status').dataset.status = booking?.status ?? '';
    if (!booking) return;
    const [heading, body] = bookingWords(booking);
    text(byId('booking-status'), heading);
    text(byId('booking-text'), body);
    show(byId('booking-close'), booking.status !== 'PENDING');
    text(byId('booking-close'), place?.status === 'ACTIVE' ? 'Choose other seats' : 'Close');
  }
}

function selectionText(hold, wanted, changed) {
  if (!hold) return wanted.length > 0 ? `Selected: ${seatList(wanted)}` : 'Nothing selected yet.';
  if (!changed) return 'To change seats, select or unselect them in the plan.';
  return wanted.length > 0 ? 'Your change is not made yet; the seats above are still yours.' : 'Select at least one seat, or release all.';
}

/** What a booking's state means for the person. */
function bookingWords(booking) {
  const seats = seatList(booking.seats ?? []);
  switch (booking.status) {
    case 'PENDING': return ['Booking in progress…', `We are booking ${seats}. Your seats cannot be lost meanwhile; this takes a moment.`];
    case 'CONFIRMED': return ['Booked', `${seats} are yours, for ${price(booking.price)}. Booking ${booking.bookingId}.`];
    case 'CANCELLED': return ['Booking cancelled', `${seats} were given back.`];
    default: return ['Not booked', rejection(booking, seats)];
  }
}

function rejection({ reason, conflicts = [] }, seats) {
  if (reason === 'SEAT_UNAVAILABLE') {
    const which = conflicts.length > 0 ? seatList(conflicts) : seats;
    return `Sold to somebody else meanwhile: ${which}. Nothing was charged, the plan is up to date again, and you can choose other seats.`;
  }
  return `The booking of ${seats} failed (${reason || 'unknown reason'}). Nothing was sold. You can try again.`;
}
