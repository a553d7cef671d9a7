package bench

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Machine is what a measurement ran on.
type Machine struct {
	CPU     string   `json:"cpu"`
	Cores   int      `json:"cores"`
	System  string   `json:"system"`
	Go      string   `json:"go"`
	Servers []string `json:"servers"` // and their versions
}

// String names it in one line.
func (m Machine) String() string {
	parts := append([]string{fmt.Sprintf("%d cores (%s)", m.Cores, m.CPU), m.System, m.Go}, m.Servers...)
	return strings.Join(parts, ", ")
}

func thisMachine(servers []string) Machine {
	return Machine{CPU: processor(), Cores: runtime.NumCPU(), System: system(), Go: runtime.Version(), Servers: servers}
}

// processor is the processor's name where the system tells it as Linux does.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func system() string {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return runtime.GOOS
	}
	return runtime.GOOS + " " + strings.TrimSpace(string(release))
}

// load is the number of processes that wanted to run in the last minute; 0 where
// the system does not tell.
func load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	value, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return value
}

// Meter measures a stretch of time, and what of it this process computed.
type Meter struct {
	began time.Time
	used  time.Duration
}

// StartMeter begins one.
func StartMeter() Meter { return Meter{began: time.Now(), used: computed()} }

// Read returns what has passed since.
func (m Meter) Read() (wall, cpu time.Duration) { return time.Since(m.began), computed() - m.used }

// computed is the processor time that this process has used; waiting costs none.
func computed() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
