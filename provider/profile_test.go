package provider

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAProfileIsTheSameForTheSameSettings(t *testing.T) {
	const want = "veo-3 duration=8 resolution=720p"
	for _, settings := range []map[string]any{
		{"duration": 8, "resolution": "720p"},
		{"duration": 8.0, "resolution": " 720p "},
		{"duration": "8", "resolution": "720p", "seed": nil, "style": "", "audio": false},
	} {
		require.Equal(t, want, Profile(" veo-3 ", settings))
	}
	require.Equal(t, "m", Profile("m", nil))
	require.Equal(t, "m a=x_y b=true c=0.5", Profile("m", map[string]any{"a": "x\ny", "b": true, "c": 0.5}))
	require.NotEqual(t, Profile("m", map[string]any{"d": 5}), Profile("m", map[string]any{"d": 10}))
	require.Contains(t, Profile("m", map[string]any{"f": func() {}}), "m f=", "what is no JSON is told somehow")
}
