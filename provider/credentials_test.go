package provider

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// An environment variable that is not set gives Secret("").
func TestAnEmptySecretIsRefusedAtOnce(t *testing.T) {
	for _, empty := range []string{"", " \n"} {
		cfg := Config{BaseURL: "https://h", Credentials: Secret(empty)}
		for name, make := range map[string]func(Config) error{
			"":                    func(cfg Config) error { _, err := NewClient(cfg); return err },
			"FAL_KEY":             func(cfg Config) error { _, err := NewFal(cfg); return err },
			"REPLICATE_API_TOKEN": func(cfg Config) error { _, err := NewReplicate(cfg); return err },
			"ATLASCLOUD_API_KEY":  func(cfg Config) error { _, err := NewAtlas(cfg); return err },
		} {
			err := make(cfg)
			require.ErrorContains(t, err, "jobpoll: provider.Config.Credentials: the secret is empty", name)
			require.ErrorContains(t, err, "environment variable")
			require.ErrorContains(t, err, name)
			require.NotContains(t, err.Error(), "nil", name)
		}
	}
	_, err := Secret("")(t.Context())
	require.ErrorContains(t, err, "the secret is empty", "where it is called all the same")
}

func TestCredentialsThatMayBeEmptyAreTakenAndNotAsked(t *testing.T) {
	asked := false
	for name, source := range map[string]Credentials{
		"none":         nil,
		"one":          Secret("s"),
		"the caller's": func(context.Context) (string, error) { asked = true; return "", nil },
		"a wrapper":    func(ctx context.Context) (string, error) { asked = true; return Secret("")(ctx) },
	} {
		_, err := NewClient(Config{BaseURL: "https://h", Credentials: source})
		require.NoError(t, err, name)
	}
	require.False(t, asked)
}
