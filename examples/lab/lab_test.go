package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"go/parser"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func labRead(t *testing.T, text string) population {
	t.Helper()
	p, err := read(strings.NewReader(text), time.Second)
	require.NoError(t, err)
	return p
}

func TestDurationsAreReadInTheOrderOfTime(t *testing.T) {
	for name, text := range map[string]string{
		"plain":              "12\n1m30s\n3.5\n",
		"with a title":       "seconds\n12\n90\n3.5\n",
		"with a comment":     "# from the log\n12\n90\n3.5",
		"of Windows":         "\xef\xbb\xbf12\r\n90\r\n3.5\r\n",
		"with empty lines":   "12\n\n90\n\n\n3.5\n",
		"with spaces":        " 12\n 90\n 3.5 \n",
		"with one profile":   "p,12\np,90\np,3.5\n",
		"with titles":        "profile,duration\np,12\np,90\np,3.5\n",
		"in quotation marks": "\"p\",\"12\"\n\"p\",\"90\"\n\"p\",\"3.5\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			p := labRead(t, text)
			require.Len(t, p.jobs, 3)
			for i, want := range []time.Duration{12 * time.Second, 90 * time.Second, 3500 * time.Millisecond} {
				assert.Equal(t, want, p.jobs[i].Takes)
			}
			require.Len(t, p.set.Profiles, 1)
			assert.Equal(t, 12.0, p.set.Profiles[0].Expected)
			assert.Empty(t, p.warning)
		})
	}
}

func TestProfilesAreKeptApart(t *testing.T) {
	p := labRead(t, "fast,3\nslow,300\nfast,4\nfast,5\n")
	require.Len(t, p.set.Profiles, 2)
	assert.Equal(t, 3.0, p.set.Profiles[0].Weight)
	assert.Equal(t, 4.0, p.set.Profiles[0].Expected)
	assert.Equal(t, 1, p.jobs[1].Profile)
	assert.Equal(t, "slow", p.jobs[1].Name)
}

func TestBadDurationsAreNamedWithTheirLine(t *testing.T) {
	for text, want := range map[string]string{
		"12\n-3\n":       "line 2: -3 is no duration",
		"12\n13\n0\n":    "line 3: 0 is no duration",
		"12\nNaN\n":      "line 2: NaN is no duration",
		"NaN\n12\n":      "line 1: NaN is no duration",
		"12\n+Inf\n":     "line 2: +Inf is more than a week",
		"-Inf\n":         "line 1: -Inf is no duration",
		"12\n1e300\n":    "line 2: 1e300 is more than a week: are these milliseconds?",
		"12\n1e400\n":    "line 2:",
		"12\n1e-300\n":   "line 2: 1e-300 is less than a millisecond",
		"12\n-1m\n":      "line 2: -1m is no duration",
		"12\nsoon\n":     `line 2: "soon" is no duration`,
		"a,12\nb,\n":     `line 2: "" is no duration`,
		"a,b,12\n":       "line 1: 3 fields",
		"a,12\n\"b,13\n": "line 2",
		"":               "there is no duration",
		"seconds\n":      "there is no duration",
		"12\nseconds\n":  "line 2:",
		"12\n" + strings.Repeat("x", 1<<16) + "\n": "line 2:",
		strings.Repeat("x", 300) + ",12\n":         "line 1: a profile of 300 bytes",
	} {
		_, err := read(strings.NewReader(text), time.Second)
		if assert.Error(t, err, "%.40q", text) {
			assert.Contains(t, err.Error(), want)
			assert.Less(t, len(err.Error()), 200)
		}
	}
}

func TestAMillionProfilesAreRefusedWithTheLineWhereTheyAreTooMany(t *testing.T) {
	r, w := io.Pipe()
	go func() {
		for i := range 1_000_000 {
			if _, err := fmt.Fprintf(w, "job-%d,12\n", i); err != nil {
				return // it has seen enough
			}
		}
		w.Close()
	}()
	_, err := read(r, time.Second)
	r.Close()
	require.Error(t, err)
	assert.Contains(t, err.Error(), fmt.Sprintf("line %d: more than %d profiles", maxProfiles+1, maxProfiles))
}

func TestMillisecondsGetAWarning(t *testing.T) {
	assert.Contains(t, labRead(t, "12000\n14500\n9800\n").warning, "-unit ms")
	p, err := read(strings.NewReader("12000\n14500\n9800\n"), time.Millisecond)
	require.NoError(t, err)
	assert.Empty(t, p.warning)
	assert.Equal(t, 12*time.Second, p.jobs[0].Takes)
	assert.Empty(t, labRead(t, "5400\n7200\n30.5\n7300.25\n").warning, "two hours, to a fraction of a second")
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{"12\n", "a,12\nb,1m\n", "\"", "NaN", "1e400", "a,b,c", "\xef\xbb\xbf1", "#\n", ",\n", "1,,\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := read(strings.NewReader(s), time.Second)
		if err != nil {
			return
		}
		for _, j := range p.jobs {
			if j.Takes < time.Millisecond || j.Takes > 7*24*time.Hour {
				t.Fatalf("%q gives a job of %v", s, j.Takes)
			}
		}
	})
}

// labRun runs the program as a user does.
func labRun(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

func TestAFileOfDurationsGivesATableARouteAndPictures(t *testing.T) {
	dir := t.TempDir()
	var text strings.Builder
	for i := range 300 {
		fmt.Fprintf(&text, "model-1/1080p,%d\nmodel-2,%d.5\n", 50+i%7, 200+i%13)
	}
	file := filepath.Join(dir, "durations.csv")
	require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o600))
	code, out, errs := labRun(t, "-cost", "500ms", "-o", filepath.Join(dir, "mine"), file)
	require.Zero(t, code, errs)

	assert.Contains(t, out, "600 jobs of 2 profiles")
	for _, name := range []string{"jobpoll", "optimum", "cenkalti", "Vercel", "Temporal"} {
		assert.Contains(t, out, name)
	}
	assert.Contains(t, out, "PollCost: 500 * time.Millisecond")
	assert.Contains(t, out, `"model-1/1080p": {Expected: 53 * time.Second}`)
	_, literal, _ := strings.Cut(out, "jobpoll.Route{")
	literal, _, _ = strings.Cut(literal, "\n}\n")
	_, err := parser.ParseExpr("jobpoll.Route{" + literal + "\n}")
	assert.NoError(t, err, "what is printed can be pasted")

	svg, err := os.ReadFile(filepath.Join(dir, "mine.svg"))
	require.NoError(t, err)
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err = d.Token(); err != nil {
			break
		}
	}
	assert.ErrorIs(t, err, io.EOF)
	assert.Contains(t, string(svg), "mean delay until the end is known")
	f, err := os.Open(filepath.Join(dir, "mine.png"))
	require.NoError(t, err)
	defer f.Close()
	picture, err := png.Decode(f)
	require.NoError(t, err)
	assert.Greater(t, picture.Bounds().Dx(), 1000)
}

func TestTheSameSeedGivesTheSame(t *testing.T) {
	dir := t.TempDir()
	args := []string{"-jobs", "60", "-seed", "7", "-o", filepath.Join(dir, "lab")}
	_, first, _ := labRun(t, args...)
	_, second, _ := labRun(t, args...)
	assert.Equal(t, first, second)
	args[3] = "8"
	_, other, _ := labRun(t, args...)
	assert.NotEqual(t, first, other)
}

func TestOneJobIsEnough(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "one.csv")
	require.NoError(t, os.WriteFile(file, []byte("12\n"), 0o600))
	code, out, errs := labRun(t, "-o", filepath.Join(dir, "one"), file)
	require.Zero(t, code, errs)
	assert.NotContains(t, out, "NaN")
	assert.NotContains(t, out, "Inf")
}

func TestWrongFlagsAreTold(t *testing.T) {
	for _, args := range [][]string{{"-cost", "0"}, {"-cost", "-2s"}, {"-unit", "h"}, {"-jobs", "1"}, {"-o", ""}, {"a.csv", "b.csv"}, {"-nothing"}} {
		code, out, errs := labRun(t, args...)
		assert.Equal(t, 2, code, "%v", args)
		assert.Empty(t, out)
		assert.NotEmpty(t, errs)
	}
	code, _, errs := labRun(t, "-h")
	assert.Zero(t, code)
	assert.Contains(t, errs, "usage: lab [flags] [file.csv]")
	for _, name := range []string{"-seed", "-cost", "-o ", "-unit"} {
		assert.Contains(t, errs, name)
	}
	code, _, errs = labRun(t, filepath.Join(t.TempDir(), "none.csv"))
	assert.Equal(t, 1, code)
	assert.Contains(t, errs, "none.csv")
}

func TestAFileThatCannotBeReadToItsEndIsAnError(t *testing.T) {
	broken := errors.New("the disk is gone")
	_, err := read(io.MultiReader(strings.NewReader("12\n13\n"), errReader{broken}), time.Second)
	assert.ErrorIs(t, err, broken)
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }
