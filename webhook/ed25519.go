package webhook

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
)

// weakPoints are the keys, without the sign in their last bit, under which a
// signature can be made without a private key: the points of small order, and
// other ways to write them.
// Source: libsodium's list of the same; a test forges for each of them
var weakPoints = []string{
	"0000000000000000000000000000000000000000000000000000000000000000",
	"0100000000000000000000000000000000000000000000000000000000000000",
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
}

// newEd25519 makes a public key of its bytes.
func newEd25519(b []byte) (ed25519.PublicKey, error) {
	if len(b) == 0 {
		return nil, errors.New("it is empty")
	}
	if len(b) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("it has %d bytes, and a key has %d", len(b), ed25519.PublicKeySize)
	}
	point := slices.Clone(b)
	point[len(point)-1] &= 0x7f
	if slices.Contains(weakPoints, hex.EncodeToString(point)) {
		return nil, errors.New("it is weak: anybody could sign for it")
	}
	return ed25519.PublicKey(slices.Clone(b)), nil
}

// noSignature stands for one that could not be read, so that a delivery with
// none costs what one with a wrong one does.
var noSignature = make([]byte, ed25519.SignatureSize)

// signedBy reports whether one of the signatures is that of the message under
// one of the keys. It tries all of them.
func signedBy(keys []ed25519.PublicKey, message []byte, signatures [][]byte) bool {
	if len(signatures) == 0 {
		signatures = [][]byte{noSignature}
	}
	good := false
	for _, key := range keys {
		for _, sig := range signatures {
			good = ed25519.Verify(key, message, sig) || good // false for any other length
		}
	}
	return good
}
