// The person's bookings of this show.

import { price, seatList, when } from '../text.js';
import { byId, confirmButton, el, show } from './dom.js';

const NAMES = { PENDING: 'In progress', CONFIRMED: 'Booked', REJECTED: 'Not booked', CANCELLED: 'Cancelled' };
const TONES = { CONFIRMED: 'good', REJECTED: 'bad', PENDING: 'warn' };

export class BookingsView {
  #room; #shown = '';

  constructor(room) {
    this.#room = room;
  }

  render(signedIn) {
    const { bookings, busy } = this.#room;
    show(byId('bookings-panel'), signedIn);
    show(byId('no-bookings'), bookings.length === 0);
    const wanted = JSON.stringify([bookings, busy === 'cancel']);
    if (wanted === this.#shown) return;
    this.#shown = wanted;
    byId('bookings').replaceChildren(...bookings.map((b) => this.#item(b, busy === 'cancel')));
  }

  #item(booking, busy) {
    return el('li', { 'data-booking': booking.bookingId, 'data-status': booking.status },
      el('p', {}, el('strong', {}, seatList(booking.seats)), ' ', el('span', { class: 'chip', 'data-tone': TONES[booking.status] ?? '' }, NAMES[booking.status] ?? booking.status)),
      el('p', { class: 'quiet' }, `${price(booking.price)} · ${when(booking.createdAt)}`),
      booking.status === 'CONFIRMED'
        ? confirmButton('Cancel booking', 'Give these seats back?', () => this.#room.cancel(booking.bookingId), { class: 'danger', disabled: busy })
        : null);
  }
}
