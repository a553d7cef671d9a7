// What the operator's forms send, made from what stands in their fields.

export const QUEUE = ['maxActive', 'ratePerMinute', 'turnSeconds', 'sessionSeconds', 'graceSeconds', 'lateJoinSeconds', 'overAdmitPercent', 'ordinaryWeight'];
const SEATING = ['holdSeconds', 'seatLimit'];
const TIMES = ['startsAt', 'prequeueAt', 'opensAt', 'closesAt'];

/** The numbers among the named fields that are filled in. */
function numbers(fields, names) {
  return Object.fromEntries(names.filter((n) => (fields[n] ?? '') !== '').map((n) => [n, Number(fields[n])]));
}

/** Lanes as they are typed, `fans 3, press 1`; one without a weight weighs 1. */
export function readLanes(typed) {
  return typed.split(',').map((lane) => lane.trim().split(/\s+/)).filter(([name]) => name)
    .map(([name, weight = '1']) => ({ name, weight: Number(weight) }));
}

/** The other way about. */
export function writeLanes(lanes = []) {
  return lanes.map(({ name, weight }) => `${name} ${weight}`).join(', ');
}

/** A local date and time as an instant. */
export function instant(local) {
  return new Date(local).toISOString();
}

/**
 * The body that creates a show. An empty field is left out, so that the server's
 * default holds.
 */
export function newShow(fields, sections) {
  const show = { title: fields.title.trim() };
  for (const name of ['id', 'venue']) if (fields[name]?.trim()) show[name] = fields[name].trim();
  for (const name of TIMES) if (fields[name]) show[name] = instant(fields[name]);
  const queue = numbers(fields, QUEUE);
  if (fields.lanes?.trim()) queue.lanes = readLanes(fields.lanes);
  if (Object.keys(queue).length > 0) show.queue = queue;
  const seating = numbers(fields, SEATING);
  if (sections.length > 0) {
    seating.sections = sections.map((s) => ({ name: s.name.trim(), rows: Number(s.rows), seatsPerRow: Number(s.seatsPerRow), price: Number(s.price || 0) }));
  }
  if (Object.keys(seating).length > 0) show.seating = seating;
  return show;
}

/** The body that changes the limits: only those that differ; null when none does. */
export function limitChange(fields, queue) {
  const changed = Object.entries(numbers(fields, QUEUE)).filter(([name, value]) => (queue[name] ?? 1) !== value);
  const lanes = readLanes(fields.lanes ?? writeLanes(queue.lanes));
  if (writeLanes(lanes) !== writeLanes(queue.lanes)) changed.push(['lanes', lanes]);
  return changed.length > 0 ? { queue: Object.fromEntries(changed) } : null;
}

/** The fields of a problem in a readable line. */
export function explain(err) {
  const problems = err.problem?.problems ?? err.problem?.errors ?? [];
  return problems.length > 0 ? problems.map((p) => `${p.field}: ${p.detail}`).join('; ') : err.message;
}
