package provider

// Each adapter shows the Client that it calls by: to download an output, and to ask the
// provider what the adapter does not, by the same credentials and to the same bounds.

// Client is what the adapter calls by.
func (f *Fal) Client() *Client { return f.c }

// Client is what the adapter calls by.
func (p *Replicate) Client() *Client { return p.c }

// Client is what the adapter calls by.
func (a *Atlas) Client() *Client { return a.c }

// Client is what the adapter calls by.
func (p *Runway) Client() *Client { return p.c }

// Client is what the adapter calls by.
func (p *Luma) Client() *Client { return p.c }

// Client is what the adapter calls by: its Download gets the video.
func (p *OpenAI) Client() *Client { return p.c }

// Client is what the adapter calls by.
func (p *Kling) Client() *Client { return p.c }

// Client is what the adapter calls by.
func (p *Kling3) Client() *Client { return p.k.c }

// Client is what the adapter calls by.
func (p *MiniMax) Client() *Client { return p.c }

// Client is what the adapter calls by.
func (p *MiniMaxV2) Client() *Client { return p.c }

// Client is what the adapter calls by: its Download gets the video.
func (p *Veo) Client() *Client { return p.c }

// Client is what the adapter calls by.
func (p *DashScope) Client() *Client { return p.c }

// Client is what the adapter calls by.
func (p *Ark) Client() *Client { return p.c }

// Client is what the adapter calls by.
func (p *WaveSpeed) Client() *Client { return p.c }

// Client is what the adapter calls by.
func (p *XAI) Client() *Client { return p.c }

// Client is what the adapter calls by: its Download gets the video.
func (p *Stability) Client() *Client { return p.c }

// Client is what the adapter calls by.
func (p *AzureLRO) Client() *Client { return p.c }

// Client is what the adapter calls by.
func (p *GoogleLRO) Client() *Client { return p.c }
