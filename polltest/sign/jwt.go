package sign

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// JWT sends a JSON Web Token, signed by RS256, as Gemini does to a URL that came
// with a request.
type JWT struct {
	Key *rsa.PrivateKey
	// KeyID is the id of the key in the key set.
	KeyID string
	// ID is the claim "jti", Issuer "iss" and Audience "aud"; empty ones are left out.
	ID, Issuer, Audience string
	// Life is how long after its signing the token expires. Zero: 5 minutes.
	// Negative: it has expired before.
	Life time.Duration
	// Header is the header. Empty: Webhook-Signature.
	Header string
}

// Sign implements Signer.
func (s JWT) Sign(h http.Header, _ []byte, at time.Time) error {
	if s.Key == nil {
		return errors.New("jobpoll: sign: there is no key")
	}
	life := s.Life
	if life == 0 {
		life = 5 * time.Minute
	}
	claims := map[string]any{"iat": at.Unix(), "exp": at.Add(life).Unix()}
	for name, v := range map[string]string{"jti": s.ID, "iss": s.Issuer, "aud": s.Audience} {
		if v != "" {
			claims[name] = v
		}
	}
	head, _ := json.Marshal(map[string]string{"alg": "RS256", "typ": "JWT", "kid": s.KeyID}) // strings alone
	payload, _ := json.Marshal(claims)                                                       // and numbers
	text := base64url(head) + "." + base64url(payload)
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, s.Key, crypto.SHA256, sum[:])
	if err != nil {
		return fmt.Errorf("jobpoll: sign: %w", err)
	}
	name := s.Header
	if name == "" {
		name = "Webhook-Signature"
	}
	h.Set(name, text+"."+base64url(sig))
	return nil
}
