// Package events carries requests to the workers and facts to the API.
//
// A command is a request to do something (AdmitShow, BookSeats, CancelBooking,
// MarkRead). It is a message on a Redis Stream, published by Commands and
// consumed by a Consumer through a consumer group. Once publishing has returned
// without error the command runs at least once, whatever is killed; it may run
// twice, or beside itself on another worker, so every handler is safe to run
// again with the same command id. There is no order between commands. A command
// that fails too often, or that nobody can read, becomes a dead letter, which an
// operator lists, requeues or drops; it never holds up the others.
//
// A Notification is a fact, published after it became true. It goes over Redis
// Pub/Sub by way of a Bus to every API process, at most once. What a process
// missed it is told of by Sink.Gap, and must then read the state again: a
// notification only ever says sooner what the state says too.
//
// The message library, the stream entries and the consumer groups are known
// to this package alone.
package events
