package layout

import "context"

// CodeField is the name of the field of forms that proves that one of our pages has made them.
const CodeField = "code"

type codeKey struct{}

// WithCode keeps what forms of a page must have in that field.
func WithCode(ctx context.Context, code string) context.Context {
	return context.WithValue(ctx, codeKey{}, code)
}

// Code returns it.
func Code(ctx context.Context) string {
	code, _ := ctx.Value(codeKey{}).(string)
	return code
}
