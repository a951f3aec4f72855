package loopback

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// KlingKeys is a Config.Authorize for clients that sign tokens with an access key and a
// secret key, as provider.KlingTokens does: a token is right that is a JWT signed with
// the secret key by HS256, whose iss is the access key, whose exp is later than now,
// and whose nbf, where it has one, is not. White space around the keys is cut off;
// with an empty one no token is right.
//
// Source: a copy of Kling's documents of its API. Not verified: whether Kling wants an
// nbf, and how far it lets clocks differ, here not at all.
func KlingKeys(accessKey, secretKey string) func(credential string, now time.Time) bool {
	access, key := strings.TrimSpace(accessKey), []byte(strings.TrimSpace(secretKey))
	return func(credential string, now time.Time) bool {
		if access == "" || len(key) == 0 {
			return false
		}
		claims, ok := verifiedHS256(credential, key)
		if !ok || claims["iss"] != access {
			return false
		}
		at := float64(now.Unix()) + float64(now.Nanosecond())/float64(time.Second)
		end, ends := claims["exp"].(float64) // in seconds since 1970
		begin, begins := claims["nbf"].(float64)
		return ends && at < end && (claims["nbf"] == nil || begins && at >= begin)
	}
}

// verifiedHS256 reads the claims of a JWT that is signed with the key. It reads into
// maps: the case of a name counts, which a struct does not look at.
func verifiedHS256(token string, key []byte) (claims map[string]any, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, false
	}
	head, body, signature := parts[0], parts[1], parts[2]
	var header map[string]any
	sum := hmac.New(sha256.New, key)
	sum.Write([]byte(head + "." + body))
	sent, err := base64.RawURLEncoding.Strict().DecodeString(signature)
	if err != nil || !hmac.Equal(sent, sum.Sum(nil)) {
		return nil, false
	}
	ok = fromBase64(head, &header) && header["alg"] == "HS256" && fromBase64(body, &claims)
	return claims, ok
}

// fromBase64 reads JSON in base64.
func fromBase64(text string, v any) bool {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return err == nil && json.Unmarshal(raw, v) == nil
}
