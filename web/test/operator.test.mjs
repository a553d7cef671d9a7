import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOrder, letIn, previewed, removePlace } from '../js/operator-actions.js';
import { explain, instant, limitChange, newShow, readLanes, writeLanes } from '../js/operator-form.js';
import { odds } from '../js/text.js';

test('empty fields are left to the server\'s defaults', () => {
  assert.deepEqual(newShow({ title: ' Gala ', venue: '', id: '', maxActive: '' }, []), { title: 'Gala' });
});

test('filled fields go where they belong', () => {
  const show = newShow({ title: 'Gala', id: 'gala', opensAt: '2030-05-01T10:00:00', maxActive: '5', seatLimit: '6' },
    [{ name: ' A ', rows: '2', seatsPerRow: '3', price: '12.5' }]);
  assert.equal(show.id, 'gala');
  assert.equal(show.opensAt, instant('2030-05-01T10:00:00'));
  assert.deepEqual(show.queue, { maxActive: 5 });
  assert.deepEqual(show.seating, { seatLimit: 6, sections: [{ name: 'A', rows: 2, seatsPerRow: 3, price: 12.5 }] });
});

test('only limits that differ are sent', () => {
  const queue = { maxActive: 5, ratePerMinute: 60 };
  assert.equal(limitChange({ maxActive: '5', ratePerMinute: '60' }, queue), null);
  assert.deepEqual(limitChange({ maxActive: '9', ratePerMinute: '60' }, queue), { queue: { maxActive: 9 } });
});

test('lanes are typed with their weights', () => {
  assert.deepEqual(readLanes(' fans 3, press,, late  12 '), [{ name: 'fans', weight: 3 }, { name: 'press', weight: 1 }, { name: 'late', weight: 12 }]);
  assert.equal(writeLanes([{ name: 'fans', weight: 3 }, { name: 'press', weight: 1 }]), 'fans 3, press 1');
  assert.equal(writeLanes(undefined), '');
  assert.deepEqual(newShow({ title: 'Gala', lanes: 'fans 3', ordinaryWeight: '2' }, []),
    { title: 'Gala', queue: { ordinaryWeight: 2, lanes: [{ name: 'fans', weight: 3 }] } });
  const queue = { maxActive: 5, lanes: [{ name: 'fans', weight: 3 }] };
  assert.equal(limitChange({ maxActive: '5', ordinaryWeight: '1', lanes: 'fans  3' }, queue), null, 'no weight is 1');
  assert.deepEqual(limitChange({ maxActive: '5', ordinaryWeight: '1', lanes: 'fans 4' }, queue), { queue: { lanes: [{ name: 'fans', weight: 4 }] } });
  assert.deepEqual(codeOrder({ lane: 'fans', count: '2', uses: '', until: '' }), { lane: 'fans', count: 2 });
});

test('a refusal names every field', () => {
  assert.equal(explain({ message: 'm', problem: { problems: [{ field: 'title', detail: 'must not be empty' }, { field: 'id', detail: 'taken' }] } }),
    'title: must not be empty; id: taken');
  assert.equal(explain({ message: 'm' }), 'm');
});

test('what an operator did is told in a sentence', () => {
  assert.equal(previewed({ waiting: 8200, medianSecondsBefore: 660, medianSecondsAfter: 1020 }), 'The median wait goes from 11 min to 17 min for 8,200 people waiting.');
  assert.equal(previewed({ waiting: 0 }), 'Nobody is waiting.');
  assert.equal(letIn({ asked: 10, admitted: 10 }), '10 people of 10 let in.');
  assert.equal(letIn({ asked: 10, admitted: 1, limitedBy: 'maxActive' }), '1 person of 10 let in: as many are inside as may be.');
});

test('a place is ended by its id or its person, also where a name looks like an id', async () => {
  const asked = [];
  const desk = (known) => ({
    async post(path, body) {
      asked.push(body);
      if (!known(body)) throw Object.assign(new Error('no place'), { status: 404 });
    },
  });
  await removePlace(desk(() => true), 'remove', 'ada');
  await removePlace(desk(() => true), 'remove', 'AAAAAAAAAAAAAA');
  await removePlace(desk((body) => body.person), 'remove', 'margaret_smith');
  await assert.rejects(removePlace(desk(() => false), 'remove', 'margaret_smith'), { status: 404 });
  assert.deepEqual(asked, [{ person: 'ada' }, { requestId: 'AAAAAAAAAAAAAA' }, { requestId: 'margaret_smith' }, { person: 'margaret_smith' },
    { requestId: 'margaret_smith' }, { person: 'margaret_smith' }]);
});

test('odds are told as they are', () => {
  assert.equal(odds({ seatsLeft: 1900, ahead: 12499, seatsPerBuyer: 2.3 }), '1,900 seats are not sold, and 12,499 people choose before you. Recent buyers took 2.3 each.');
  assert.equal(odds({ seatsLeft: 1, ahead: 1, seatsPerBuyer: null }), '1 seat is not sold, and 1 person chooses before you.');
  assert.equal(odds(undefined), '');
});
