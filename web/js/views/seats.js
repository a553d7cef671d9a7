// The seat map: one section at a time, each seat a button that keyboard and
// screen reader can use.

import { moveFocus, seatId } from '../seatmap.js';
import { count, plural, price } from '../text.js';
import { byId, el, options, show, text } from './dom.js';

/** A section with more seats than this is shown in blocks of rows. */
const SEATS_AT_ONCE = 1500;

const STATE_WORDS = { FREE: 'free', HELD: 'in a basket', SOLD: 'sold', MINE: 'held by you' };

export class SeatsView {
  #room; #drawn = ''; #focus = null; #block = null;

  constructor(room) {
    this.#room = room;
    byId('section').addEventListener('change', () => { byId('block').value = ''; this.render(); });
    byId('block').addEventListener('change', () => this.render());
    byId('best-form').addEventListener('submit', (event) => {
      event.preventDefault();
      room.holdBest(Number(byId('best-count').value), byId('best-section').value);
    });
    const map = byId('map');
    map.addEventListener('click', (event) => {
      const seat = event.target.closest('[data-seat]');
      if (seat) {
        this.#focusOn(seat);
        room.pick(seat.dataset.seat);
      }
    });
    map.addEventListener('keydown', (event) => this.#key(event));
  }

  /** @param changed seats that may look different; all when undefined */
  render(changed) {
    const { state, seats, busy } = this.#room;
    const plan = state.show?.seating?.sections ?? [];
    const inside = state.place?.status === 'ACTIVE' && plan.length > 0;
    show(byId('seats'), inside);
    if (!inside) {
      this.#drawn = '';
      return;
    }
    const { seatLimit } = state.show.seating;
    text(byId('seat-limit'), `You can take up to ${plural(seatLimit, 'seat')}. Choose them in the plan or let us find seats together.`);
    byId('best-count').max = seatLimit;
    if (Number(byId('best-count').value) > seatLimit) byId('best-count').value = seatLimit;
    byId('best').disabled = busy !== '' || state.hold !== null;
    options(byId('best-section'), [['', 'Any'], ...plan.map((s) => [s.name, `${s.name} (${price(s.price)})`])]);
    options(byId('section'), plan.map((s) => [s.name, `${s.name} (${price(s.price)})`]));
    const section = plan.find((s) => s.name === byId('section').value) ?? plan[0];
    const tally = seats.tally(section.name, section.rows * section.seatsPerRow);
    text(byId('section-tally'), seats.loaded ? `${count(tally.free)} free, ${count(tally.held)} in baskets, ${count(tally.sold)} sold` : 'Reading the plan…');
    text(byId('seats-note'), note(state));
    const fresh = this.#draw(section);
    this.#paint(fresh ? undefined : changed);
  }

  /** Builds the grid when another section or block of rows is to be seen. */
  #draw(section) {
    const perBlock = Math.max(1, Math.floor(SEATS_AT_ONCE / section.seatsPerRow));
    const starts = [];
    for (let row = 1; row <= section.rows; row += perBlock) starts.push(row);
    show(byId('block-label'), starts.length > 1);
    options(byId('block'), starts.map((from) => [String(from), `${from} to ${Math.min(section.rows, from + perBlock - 1)}`]));
    const firstRow = Number(byId('block').value) || 1;
    const lastRow = Math.min(section.rows, firstRow + perBlock - 1);
    const key = JSON.stringify([section, firstRow]);
    if (key === this.#drawn) return false;
    this.#drawn = key;
    this.#block = { section, firstRow, lastRow, seatsPerRow: section.seatsPerRow };
    this.#focus = { row: firstRow, number: 1 };
    const grid = el('div', { role: 'grid', 'aria-label': `Seats of section ${section.name}` });
    for (let row = firstRow; row <= lastRow; row++) grid.append(this.#row(section, row));
    const map = byId('map');
    map.replaceChildren(grid);
    map.scrollLeft = (map.scrollWidth - map.clientWidth) / 2; // the middle of the rows is wanted first
    return true;
  }

  #row(section, row) {
    const cells = [el('span', { class: 'row-name', role: 'rowheader' }, String(row))];
    for (let number = 1; number <= section.seatsPerRow; number++) {
      const first = row === this.#focus.row && number === this.#focus.number;
      cells.push(el('span', { role: 'gridcell' }, el('button', {
        type: 'button', class: 'seat', 'data-seat': seatId(section.name, row, number),
        'data-row': row, 'data-number': number, tabindex: first ? 0 : -1,
      }, el('span', {}, String(number)))));
    }
    return el('div', { class: 'seat-row', role: 'row' }, ...cells);
  }

  #paint(changed) {
    const map = byId('map');
    const buttons = changed
      ? changed.map((id) => map.querySelector(`[data-seat="${CSS.escape(id)}"]`)).filter(Boolean)
      : map.querySelectorAll('[data-seat]');
    for (const button of buttons) {
      const id = button.dataset.seat;
      const state = this.#room.stateOf(id);
      const picked = this.#room.picked.has(id);
      button.dataset.state = state;
      button.setAttribute('aria-pressed', String(picked));
      button.setAttribute('aria-disabled', String(!picked && (state === 'HELD' || state === 'SOLD')));
      const { row, number } = button.dataset;
      const words = [`Section ${this.#block.section.name}, row ${row}, seat ${number}`, STATE_WORDS[state], price(this.#block.section.price)];
      if (picked && state !== 'MINE') words.push('selected');
      button.setAttribute('aria-label', words.join(', '));
    }
  }

  #key(event) {
    const seat = event.target.closest('[data-seat]');
    if (!seat) return;
    const from = { row: Number(seat.dataset.row), number: Number(seat.dataset.number) };
    const to = moveFocus(event.key, event.ctrlKey, from, this.#block);
    if (!to) return;
    event.preventDefault();
    const target = byId('map').querySelector(`[data-row="${to.row}"][data-number="${to.number}"]`);
    this.#focusOn(target);
    target.focus();
  }

  /** Only one seat of the map is a tab stop: the one last used. */
  #focusOn(seat) {
    byId('map').querySelector('[data-seat][tabindex="0"]')?.setAttribute('tabindex', '-1');
    seat.setAttribute('tabindex', '0');
  }
}

function note({ show: sale }) {
  switch (sale.availability) {
    case 'ALL_HELD': return 'All seats are in baskets, some may come back. Watch the plan: a seat that is given back turns free here.';
    case 'SOLD_OUT': return 'Every seat is sold. Seats come back only when somebody cancels.';
    default: return '';
  }
}
