package events

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
)

// Fields of a command's stream entry. payload is the command as JSON; a read
// mark has its own fields beside the others instead.
const (
	fieldID          = "id" // the command id
	fieldType        = "type"
	fieldVersion     = "version"
	fieldAt          = "at" // RFC 3339
	fieldTraceparent = "traceparent"
	fieldPayload     = "payload"
)

// entryMarshaller writes messages as stream entries whose fields anybody can
// read with redis-cli; the library's own format is binary.
type entryMarshaller struct{}

// Marshal implements redisstream.Marshaller.
func (entryMarshaller) Marshal(stream string, msg *message.Message) (map[string]any, error) {
	entry := map[string]any{fieldID: msg.UUID}
	for name, value := range msg.Metadata {
		entry[name] = value
	}
	if stream != StreamChatRead {
		entry[fieldPayload] = string(msg.Payload)
		return entry, nil
	}
	var fields map[string]string
	if err := json.Unmarshal(msg.Payload, &fields); err != nil {
		return nil, fmt.Errorf("flatten read mark: %w", err)
	}
	for name, value := range fields {
		entry[name] = value
	}
	return entry, nil
}

// newMessage reads an entry back as a message: all fields but the payload are
// its metadata. It never fails, so that no entry can end a subscription; what is
// wrong with an entry is found when its command is decoded.
func newMessage(entryID string, fields map[string]any) *message.Message {
	text := make(map[string]string, len(fields))
	for name, value := range fields {
		text[name] = fmt.Sprint(value)
	}
	id := text[fieldID]
	if id == "" {
		id = entryID // an entry from elsewhere; its place on the stream is as unique
	}
	msg := message.NewMessage(id, message.Payload(text[fieldPayload]))
	delete(text, fieldPayload)
	msg.Metadata = text
	return msg
}

// decode reads a command's payload and checks that it is whole.
func decode[C interface{ check() error }](payload []byte) (C, error) {
	var command C
	if err := json.Unmarshal(payload, &command); err != nil {
		return command, fmt.Errorf("decode payload: %w", err)
	}
	return command, command.check()
}

// madeAt is when a command was made, or zero when the entry does not say.
func madeAt(msg *message.Message) time.Time {
	at, err := time.Parse(time.RFC3339Nano, msg.Metadata.Get(fieldAt))
	if err != nil {
		return time.Time{}
	}
	return at
}
