package main

import (
	"maps"
	"slices"

	"github.com/jobpoll/jobpoll/polltest/loopback"
	"github.com/jobpoll/jobpoll/provider"
)

// kind is a provider's wire, and the adapter that speaks it.
type kind struct {
	wire    func() loopback.Wire
	base    string // of the adapter's address, after the server's
	path    string // of an order; empty: the adapter's own
	form    bool   // an order is a form with an image
	adapter func(provider.Config) (adapter, error)
}

// kinds are all providers.
var kinds = map[string]kind{
	"fal":        {wire: loopback.Fal, adapter: made(provider.NewFal)},
	"replicate":  {wire: loopback.Replicate, adapter: made(provider.NewReplicate)},
	"atlas":      {wire: loopback.Atlas, adapter: made(provider.NewAtlas)},
	"runway":     {wire: loopback.Runway, adapter: made(provider.NewRunway)},
	"luma":       {wire: loopback.Luma, adapter: made(provider.NewLuma)},
	"openai":     {wire: loopback.OpenAI, adapter: made(provider.NewOpenAI)},
	"kling":      {wire: loopback.Kling, adapter: made(provider.NewKling)},
	"kling3":     {wire: loopback.Kling, path: "/text-to-video/kling-3.0", adapter: made(provider.NewKling3)},
	"minimax":    {wire: loopback.MiniMax, adapter: made(provider.NewMiniMax)},
	"minimax2":   {wire: loopback.MiniMaxV2, adapter: made(provider.NewMiniMaxV2)},
	"veo":        {wire: loopback.Veo, base: "/v1beta", adapter: made(provider.NewGeminiVeo)},
	"vertex":     {wire: loopback.VertexVeo, base: "/v1", adapter: made(provider.NewVertexVeo)},
	"google-lro": {wire: loopback.GoogleLRO, base: "/v1", path: "/projects/p/videos:generate", adapter: made(provider.NewGoogleLRO)},
	"dashscope":  {wire: loopback.DashScope, adapter: made(provider.NewDashScope)},
	"ark":        {wire: loopback.Ark, adapter: made(provider.NewArk)},
	"wavespeed":  {wire: loopback.WaveSpeed, adapter: made(provider.NewWaveSpeed)},
	"xai":        {wire: loopback.XAI, adapter: made(provider.NewXAI)},
	"stability":  {wire: loopback.Stability, form: true, adapter: made(provider.NewStability)},
	"azure-lro":  {wire: loopback.AzureLRO, path: "/videos:generate?api-version=2026-01-01", adapter: made(provider.NewAzureLRO)},
}

// names are those of all kinds.
func names() []string { return slices.Sorted(maps.Keys(kinds)) }

// made makes an adapter of its type one of the interface.
func made[T adapter](make func(provider.Config) (T, error)) func(provider.Config) (adapter, error) {
	return func(cfg provider.Config) (adapter, error) { return make(cfg) }
}
