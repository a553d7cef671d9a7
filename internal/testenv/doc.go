// Package testenv gives tests the real servers that Foyer runs on: a private
// redis-server and a private PostgreSQL, started when a test first asks and
// stopped when the test process ends, however it ends.
//
// A package that uses it declares
//
//	func TestMain(m *testing.M) { testenv.Main(m) } // or MainLeak
//
// Tests share one Redis and one PostgreSQL per process and keep apart by random
// show ids and a fresh database each; none may flush the shared Redis. A test
// that breaks its server takes one of its own with StartRedis. A missing server
// is looked for on PATH, then installed where that is possible; otherwise the
// test fails and says what to install. Nothing is ever skipped.
//
// FOYER_TEST_REDIS_URL and FOYER_TEST_DATABASE_URL name servers to use instead.
package testenv
