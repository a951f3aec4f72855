package main

import (
	"encoding/json"
	"net/http"

	"github.com/golang-jwt/jwt/v5"

	"github.com/jobpoll/jobpoll/polltest/loopback"
)

// klingAccessKey is that of kling.test.mjs; the secret key is the credential.
const klingAccessKey = "access-key-of-sdkcheck"

// klingTokens is Kling's wire for clients that make a token of two keys: one that is
// good stands for the credential.
type klingTokens struct{ loopback.Wire }

// Read implements loopback.Wire.
func (w klingTokens) Read(r *http.Request, body json.RawMessage) loopback.Call {
	call := w.Wire.Read(r, body)
	key := func(*jwt.Token) (any, error) { return []byte(credential), nil }
	_, err := jwt.Parse(call.Credential, key, jwt.WithValidMethods([]string{"HS256"}), jwt.WithIssuer(klingAccessKey), jwt.WithExpirationRequired())
	if err == nil {
		call.Credential = credential
	}
	return call
}
