package api

import (
	"testing"

	"foyer/internal/testenv"
)

func TestMain(m *testing.M) { testenv.MainLeak(m) }
