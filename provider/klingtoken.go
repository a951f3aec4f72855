package provider

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// What a token of Kling's says of its time.
const (
	klingTokenLife = 30 * time.Minute
	klingTokenSkew = 5 * time.Second // it holds from that long ago on: clocks differ
)

// KlingTokens gives the tokens by which Kling takes an access key and a secret key,
// for Config.Tokens: a JWT, signed by HS256, that names the access key and holds for
// 30 minutes. The secret key is not sent. White space around the keys is cut off;
// an empty one is refused by NewKling. A token holds from 5 s before it is signed:
// where Config.Clock is ahead of Kling's by more, Kling refuses it until then, with
// the code 1003.
//
// Source: a copy of Kling's documents of its API
func KlingTokens(accessKey, secretKey string) TokenSource {
	access, key := strings.TrimSpace(accessKey), []byte(strings.TrimSpace(secretKey))
	if access == "" || len(key) == 0 {
		return noToken
	}
	return func(_ context.Context, now time.Time) (Token, error) {
		expiry := now.Add(klingTokenLife).Truncate(time.Second)
		claims, err := json.Marshal(struct {
			Issuer    string `json:"iss"`
			Expires   int64  `json:"exp"`
			NotBefore int64  `json:"nbf"`
		}{access, expiry.Unix(), now.Add(-klingTokenSkew).Unix()})
		if err != nil {
			return Token{}, err
		}
		return Token{Secret: signHS256(claims, key), Expiry: expiry}, nil
	}
}

// signHS256 makes a JWT of claims.
func signHS256(claims, key []byte) string {
	const header = `{"alg":"HS256","typ":"JWT"}`
	text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString(claims)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
