package store_test

import (
	"testing"

	"foyer/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }
