package jobpoll

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

func TestStatusWordsAreScrubbed(t *testing.T) {
	for in, want := range map[string]string{
		"in_progress":                          "in_progress",
		"NOT_START":                            "NOT_START",
		"  spaced out\t":                       "spaced out",
		"":                                     "(none)",
		" \n ":                                 "(none)",
		"two\nlines":                           "two lines",
		"bad\xffbytes":                         "badbytes",
		"status_2":                             "status_2",
		"stage 12 of 30":                       "stage 12 of 30",
		"post-processing":                      "post-processing",
		"waiting for 8a1f22c9":                 "waiting for #",
		"1f0e7c1a-77aa-4b0e-9f5e-2c1d3e4f5a6b": "#",
		"task_9182736450 stuck":                "task_# stuck",
		strings.Repeat("w", 100):               strings.Repeat("w", 64),
		strings.Repeat("é", 100):               strings.Repeat("é", 32),
		"a" + strings.Repeat("é", 100):         "a" + strings.Repeat("é", 31),
	} {
		assert.Equal(t, want, scrubWord(in), "%q", in)
	}
}

func FuzzScrubbedWordIsAFitLabel(f *testing.F) {
	f.Add("in_progress")
	f.Add("a\x00b\xff" + strings.Repeat("é", 80))
	f.Fuzz(func(t *testing.T, in string) {
		got := scrubWord(in)
		assert.NotEmpty(t, got)
		assert.LessOrEqual(t, len(got), maxWordBytes)
		assert.True(t, utf8.ValidString(got))
		assert.False(t, strings.ContainsAny(got, "\n\r\x00"))
	})
}

func TestWordsBeyondTheBoundAreFolded(t *testing.T) {
	var w words
	w.add("other") // a provider's own "other" takes no place
	for i := range 50 {
		for range i + 1 {
			w.add(fmt.Sprintf("word%c%c", 'a'+i/26, 'a'+i%26))
		}
	}
	s := w.snapshot()
	assert.Len(t, s, maxWords+1)
	sum := uint64(0)
	for _, n := range s {
		sum += n
	}
	assert.EqualValues(t, 1+50*51/2, sum, "folded, not lost")
	assert.EqualValues(t, 1, s["wordaa"])
	s["wordaa"] = 99
	assert.EqualValues(t, 1, w.snapshot()["wordaa"], "a snapshot is its reader's own")
}

func TestKnownWordIsCountedWithoutAllocating(t *testing.T) {
	var w words
	w.add("NOT_START")
	assert.Zero(t, testing.AllocsPerRun(100, func() { w.add("NOT_START") }))
}
