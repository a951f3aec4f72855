package webhook

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
)

// TokenConfig says where a shared secret is. Just one of Header, Query and Path
// is required.
type TokenConfig struct {
	// Tokens are the secrets; several are good at once. At least one is required;
	// those shorter than 16 bytes are refused.
	Tokens []string
	// Header is the header that the token is the whole value of.
	Header string
	// Query is the parameter of the URL's query that holds it.
	Query string
	// Path is the wildcard of Route.Path that holds it: "token" of
	// "/hooks/luma/{token}".
	Path string
}

// Token lets those pass who know a shared secret. It is for providers that sign
// nothing (Luma, MiniMax, Ark), which are given the secret within the URL that
// they call back. It proves nothing of the body, so that a notice is a hint.
//
// A URL stands in logs, of the provider and of proxies, where a header does not.
type Token struct {
	name
	sums  [][sha256.Size]byte // of one length, whatever the token
	where TokenConfig
}

// NewToken makes the Verifier, and reports all faults of cfg joined.
func NewToken(cfg TokenConfig) (*Token, error) {
	f := &faults{what: "NewToken"}
	t := &Token{name: "webhook.Token", where: TokenConfig{Header: cfg.Header, Query: cfg.Query, Path: cfg.Path}}
	for _, key := range newSecrets(f, "Tokens", SecretText, cfg.Tokens) {
		t.sums = append(t.sums, sha256.Sum256(key))
	}
	if len(cfg.Tokens) == 0 {
		f.at("Tokens", errNoKey)
	}
	places := 0
	for _, p := range []string{cfg.Header, cfg.Query, cfg.Path} {
		if p != "" {
			places++
		}
	}
	if places != 1 {
		f.add("Header, Query, Path", "one of them says where the token is, and here %d do", places)
	}
	if cfg.Header != "" && !validName(cfg.Header) {
		f.add("Header", "%q is no name of a header", cfg.Header)
	}
	if err := f.join(); err != nil {
		return nil, err
	}
	return t, nil
}

// Verify implements Verifier.
func (t *Token) Verify(r *http.Request, _ []byte) (Proof, error) {
	text, err := t.read(r)
	sum := sha256.Sum256([]byte(text))
	good := 0
	for _, want := range t.sums {
		good |= subtle.ConstantTimeCompare(sum[:], want[:])
	}
	switch {
	case err != nil:
		return Proof{}, err
	case good != 1:
		return Proof{}, ErrSignature
	}
	return Proof{}, nil
}

func (t *Token) read(r *http.Request) (string, error) {
	switch {
	case t.where.Header != "":
		return header(r.Header, t.where.Header)
	case t.where.Path != "":
		text := r.PathValue(t.where.Path)
		if text == "" {
			return "", ErrNoSignature
		}
		return text, nil
	}
	values := r.URL.Query()[t.where.Query]
	switch {
	case len(values) == 0, len(values) == 1 && values[0] == "":
		return "", ErrNoSignature
	case len(values) > 1:
		return "", ErrMalformed
	}
	return values[0], nil
}

// hintOnly says why nothing that passes is believed.
func (t *Token) hintOnly() string { return "a token proves nothing of the body" }
