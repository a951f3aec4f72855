package jobpoll

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// readmeTable returns the rows of the table in a marked place of README.md,
// without its head.
func readmeTable(t *testing.T, place string) [][]string {
	t.Helper()
	b, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(b), "<!-- "+place+" -->\n")
	require.True(t, ok, "README.md has no place for %s", place)
	text, _, ok := strings.Cut(rest, "<!-- /"+place+" -->")
	require.True(t, ok, "the place for %s in README.md does not end", place)
	var rows [][]string
	for line := range strings.Lines(text) {
		var row []string
		for _, cell := range strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|") {
			row = append(row, strings.TrimSpace(cell))
		}
		rows = append(rows, row)
	}
	require.Greater(t, len(rows), 2)
	return rows[2:]
}

// readmeTime writes a duration as the README does.
func readmeTime(d time.Duration) string {
	switch {
	case d == NoLimit:
		return "none"
	case d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%g s", d.Seconds())
}

func readmeSpan(s Span) string {
	if s.Min == s.Max {
		return fmt.Sprintf("%g s", s.Min.Seconds())
	}
	return fmt.Sprintf("%g–%g s", s.Min.Seconds(), s.Max.Seconds())
}

func TestTheReadmeShowsTheBuckets(t *testing.T) {
	rows := readmeTable(t, "buckets")
	buckets := append(DefaultBuckets(), DefaultUnknown())
	require.Len(t, rows, len(buckets))
	for i, b := range buckets {
		require.Equal(t, readmeSpan(b.First), rows[i][1], "first look of %s", rows[i][0])
		require.Equal(t, readmeSpan(b.Later), rows[i][2], "later gaps of %s", rows[i][0])
	}
	// The first column, by its effect: the last duration of each row, and the
	// first that is beyond it.
	s := Schedule{}
	require.Equal(t, []string{"< 30 s", "30 s – 2 min", "2 – 10 min", "> 10 min", "unknown"},
		[]string{rows[0][0], rows[1][0], rows[2][0], rows[3][0], rows[4][0]})
	for i, edge := range []time.Duration{30*time.Second - 1, 2 * time.Minute, 10 * time.Minute} {
		require.Equal(t, buckets[i], *s.bucket(edge, 0))
		require.Equal(t, buckets[i+1], *s.bucket(edge+1, 0))
	}
	require.Equal(t, buckets[4], *s.bucket(0, time.Hour))
}

func TestTheReadmeShowsTheStopRules(t *testing.T) {
	none := StopRules{}.withDefaults(0)
	// What grows with the expected duration: its factor and its least.
	grown := regexp.MustCompile(`^(\d+) × expected, at least (\d+) min$`)
	field := map[string]func(StopRules) string{
		"`MaxAge`":        func(s StopRules) string { return readmeTime(s.MaxAge) },
		"`MaxQueued`":     func(s StopRules) string { return readmeTime(s.MaxQueued) },
		"`MaxProcessing`": func(s StopRules) string { return readmeTime(s.MaxProcessing) },
		"`NoProgress`":    func(s StopRules) string { return readmeTime(s.NoProgress) },
		"`MaxErrors`":     func(s StopRules) string { return strconv.Itoa(s.MaxErrors) },
		"`MissingGrace`":  func(s StopRules) string { return readmeTime(s.MissingGrace) },
		"`MissingLooks`":  func(s StopRules) string { return strconv.Itoa(s.MissingLooks) },
		"`UnknownFor`":    func(s StopRules) string { return readmeTime(s.UnknownFor) },
		"`UnknownLooks`":  func(s StopRules) string { return strconv.Itoa(s.UnknownLooks) },
		"`AuthGrace`":     func(s StopRules) string { return readmeTime(s.AuthGrace) },
	}
	for _, row := range readmeTable(t, "stop rules") {
		value := field[row[0]]
		require.NotNil(t, value, "%s is no stop rule, or stands there twice", row[0])
		delete(field, row[0])
		require.Equal(t, value(none), row[2], "%s where nothing is expected", row[0])
		if m := grown.FindStringSubmatch(row[1]); m != nil {
			factor, _ := strconv.Atoi(m[1])
			least, _ := strconv.Atoi(m[2])
			require.Equal(t, readmeTime(5*time.Hour*time.Duration(factor)), value(StopRules{}.withDefaults(5*time.Hour)), row[0])
			require.Equal(t, readmeTime(time.Duration(least)*time.Minute), value(StopRules{}.withDefaults(time.Second)), row[0])
			continue
		}
		require.Equal(t, value(StopRules{}.withDefaults(time.Minute)), row[1], row[0])
		require.Equal(t, value(StopRules{}.withDefaults(time.Hour)), row[1], row[0])
	}
	require.Empty(t, field, "stop rules that the README does not show")
}

// Numbers that stand in the text.
func TestTheReadmeTellsTheOtherDefaults(t *testing.T) {
	b, err := os.ReadFile("README.md")
	require.NoError(t, err)
	text := strings.Join(strings.Fields(string(b)), " ")
	for _, want := range []string{
		fmt.Sprintf("± %.0f %%", DefaultJitter*100),
		fmt.Sprintf("the least gap of %s", readmeTime(DefaultMinDelay)),
		fmt.Sprintf("`Config.Workers` calls (%d)", DefaultWorkers),
		fmt.Sprintf("%s, doubled up to %s", readmeTime(coolFirst), readmeTime(coolMax)),
		fmt.Sprintf("after %s, %s, … %s", readmeTime(retryBase), readmeTime(2*retryBase), readmeTime(retryCap)),
		fmt.Sprintf("is kept for it, for %s", strings.Replace(readmeTime(earlyLife), "min", "minutes", 1)),
	} {
		require.Contains(t, text, want)
	}
}
