package sign_test

import (
	"crypto/ed25519"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll/polltest/sign"
)

func ExampleRequest() {
	signer := sign.Standard{ID: "msg_p5jXN8AQM9LWM0D4loKWxJek", Secrets: []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}
	req, err := sign.Request("https://service.example/hook", []byte(`{"test": 2432232314}`), signer, time.Unix(1614265330, 0))
	if err != nil {
		panic(err)
	}
	fmt.Println(req.Method, req.Header.Get("webhook-signature"))
	// Output: POST v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
}

func TestAKeyThatIsNoneIsAnError(t *testing.T) {
	for name, s := range map[string]sign.Signer{
		"secret":      sign.Standard{Secrets: []string{"whsec_*"}},
		"private key": sign.Standard{PrivateKeys: []string{"whsk_AAAA"}},
		"no base64":   sign.Standard{PrivateKeys: []string{"whsk_*"}},
		"fal":         sign.Fal{},
		"atlas":       sign.Atlas{Key: ed25519.PrivateKey{1, 2}},
		"jwt":         sign.JWT{},
	} {
		_, err := sign.Request("http://service.example/", nil, s, time.Unix(0, 0))
		require.ErrorContains(t, err, "jobpoll: sign: ", name)
	}
	_, err := sign.Request("http://%zz", nil, sign.GitHub{}, time.Unix(0, 0))
	require.ErrorContains(t, err, "jobpoll: sign: ")
}

func TestAKeySetHasTheKeysThatItKnows(t *testing.T) {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)).Public().(ed25519.PublicKey)
	w := httptest.NewRecorder()
	sign.ServeKeys(sign.PublicKey{ID: "k1", Key: key}, sign.PublicKey{Key: "no key"}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	require.JSONEq(t, `{"keys":[{"alg":"EdDSA","crv":"Ed25519","kid":"k1","kty":"OKP","use":"sig","x":"O2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik"}]}`, w.Body.String())
	require.JSONEq(t, `{"keys":[]}`, string(sign.KeySet()))
}
