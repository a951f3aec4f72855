package main

import (
	"bytes"
	"flag"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The children of the tests are this test program.
func TestMain(m *testing.M) {
	if text := os.Getenv(orderEnv); text != "" {
		exitOn(obey(text))
		return
	}
	os.Exit(m.Run())
}

func TestFlagsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, args := range []string{
		"-jobs 0", "-rate 0", "-runs 0", "-duration 0s", "-life 0s", "-garbage -1", "-warm -1s", "-soak -1s",
		"-burst -peak", "-scale -soak 1m", "-only nobody", "jobs", "-no-such-flag",
	} {
		var said bytes.Buffer
		_, err := parse(strings.Fields(args), &said)
		assert.Error(t, err, args)
		assert.NotEmpty(t, said.String(), args)
	}
}

func TestFlagsChooseTheModeAndTheContenders(t *testing.T) {
	s, err := parse(strings.Fields("-peak -only wheel,jobpoll"), io.Discard)
	require.NoError(t, err)
	assert.Equal(t, "peak", s.Mode)
	assert.Equal(t, "wheel", s.chosen[0].name)
	s, err = parse(nil, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, "steady", s.Mode)
	assert.Len(t, s.chosen, len(contenders))
}

// A first look lies at most one interval after the admission of its job.
func TestTheLeadIsNoLongerThanTheInterval(t *testing.T) {
	s := settings{Rate: 50_000}
	for _, jobs := range []int{1, 1000, 1_000_000, 50_000_000} {
		l := s.steadyLoad(jobs)
		assert.LessOrEqual(t, l.Lead, l.Interval, "%d jobs", jobs)
		assert.Positive(t, l.Lead, "%d jobs", jobs)
	}
	assert.Equal(t, 20*time.Second, s.steadyLoad(1_000_000).Interval)
}

func TestTheReadmeTellsOfEveryFlagContenderAndColumn(t *testing.T) {
	b, err := os.ReadFile("README.md")
	require.NoError(t, err)
	text := string(b)
	var only string
	flags(&settings{}, &only).VisitAll(func(f *flag.Flag) {
		assert.Contains(t, text, "`-"+f.Name, "a flag")
	})
	for _, c := range contenders {
		assert.Contains(t, text, "`"+c.name+"`", "a contender")
	}
	for _, columns := range [][]column{steadyColumns, peakColumns, burstColumns} {
		for _, c := range columns {
			assert.Contains(t, text, "`"+c.name+"`", "a column")
		}
	}
	for _, f := range fateNames {
		assert.Contains(t, text, "`"+f+"`", "a fate")
	}
}
