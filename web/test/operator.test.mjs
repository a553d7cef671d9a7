import assert from 'node:assert/strict';
import { test } from 'node:test';
import { explain, instant, limitChange, newShow } from '../js/operator-form.js';

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

test('a refusal names every field', () => {
  assert.equal(explain({ message: 'm', problem: { problems: [{ field: 'title', detail: 'must not be empty' }, { field: 'id', detail: 'taken' }] } }),
    'title: must not be empty; id: taken');
  assert.equal(explain({ message: 'm' }), 'm');
});
