package jobpoll

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

func TestAnExcerptIsShortAndWithoutSecrets(t *testing.T) {
	assert.Equal(t, "a b", Excerpt(" a\x00\r\n b\xff "))
	assert.Equal(t, "an HTML page", Excerpt("\n<!DOCTYPE html><p>sk-0123456789abcdef"))
	assert.Equal(t, "Authorization: Bearer …", Excerpt("Authorization: Bearer SECRET"))
	long := Excerpt(strings.Repeat("é", 10<<10))
	assert.Equal(t, 201, utf8.RuneCountInString(long))
	assert.Empty(t, Excerpt(""))
}
