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
	msg := message.NewMessage(entryID, nil)
	for name, value := range fields {
		text, ok := value.(string)
		if !ok {
			text = fmt.Sprint(value)
		}
		if name == fieldPayload {
			msg.Payload = message.Payload(text)
			continue
		}
		msg.Metadata[name] = text
	}
	if id := msg.Metadata[fieldID]; id != "" {
		msg.UUID = id // an entry from elsewhere may have none; its place on the stream is as unique
	}
	return msg
}

// decode reads a command's payload and checks that it is whole.
func decode[C interface{ check() error }](payload []byte) (C, error) {
	var command C
	var err error
	if own, ok := any(&command).(json.Unmarshaler); ok {
		err = own.UnmarshalJSON(payload) // by way of json.Unmarshal the payload would be read twice
	} else {
		err = json.Unmarshal(payload, &command)
	}
	if err != nil {
		return command, fmt.Errorf("decode payload: %w", err)
	}
	return command, command.check()
}

// madeAt is when a command was made, or zero when the entry does not say.
func madeAt(msg *message.Message) time.Time {
	text := msg.Metadata.Get(fieldAt)
	if text == "" {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return at
}
