// Package sending tells who is called by a Send which submission it is for.
package sending

import "context"

type key struct{}

// With is ctx for the Send of a submission with that ClientKey.
func With(ctx context.Context, clientKey string) context.Context {
	return context.WithValue(ctx, key{}, clientKey)
}

// ClientKey is that of the submission whose Send has ctx; empty: it is none's.
func ClientKey(ctx context.Context) string {
	s, _ := ctx.Value(key{}).(string)
	return s
}
