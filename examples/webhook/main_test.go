package main

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryJobIsToldInEveryWeather(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), []string{"-jobs", "24", "-gap", "5ms"}, &out))
	for _, w := range weathers {
		row := regexp.MustCompile(regexp.QuoteMeta(w.name) + `\s+24\s+(\d+)`).FindStringSubmatch(out.String())
		require.NotNil(t, row, "%s\n%s", w.name, &out)
		assert.Equal(t, w.lost < 1, row[1] != "0", "%s\n%s", w.name, &out)
	}
	assert.Contains(t, out.String(), " 0 conflicts")
}

func TestTheExampleEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var out strings.Builder
	require.Error(t, run(ctx, []string{"-jobs", "1000"}, &out))
}
