package events

import (
	"encoding/json"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"

	"foyer/domain"
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

// fields are an entry's, in their order. They are few, and few are looked for: a
// map of them would cost more than all else that is done with an entry.
type fields []field

type field struct{ name, value string }

// fieldsOf takes the fields of an entry that the client library has read.
func fieldsOf(values map[string]any) fields {
	all := make(fields, 0, len(values))
	for name, value := range values {
		text, ok := value.(string)
		if !ok {
			text = fmt.Sprint(value)
		}
		all = append(all, field{name, text})
	}
	return all
}

// find returns a field's value; of several by one name, the last.
func (f fields) find(name string) (value string, ok bool) {
	for i := len(f) - 1; i >= 0; i-- {
		if f[i].name == name {
			return f[i].value, true
		}
	}
	return "", false
}

// Get returns a field's value, or nothing. With Set and Keys it is a carrier of a
// caller's trace.
func (f fields) Get(name string) string {
	value, _ := f.find(name)
	return value
}

// Set implements propagation.TextMapCarrier, of which entries are only read.
func (fields) Set(string, string) {}

// Keys implements propagation.TextMapCarrier.
func (f fields) Keys() []string {
	names := make([]string, len(f))
	for i := range f {
		names[i] = f[i].name
	}
	return names
}

// commandID is the id of the command in an entry. An entry from elsewhere may have
// none; its place on the stream is as unique.
func commandID(entryID string, f fields) domain.CommandID {
	if id := f.Get(fieldID); id != "" {
		return domain.CommandID(id)
	}
	return domain.CommandID(entryID)
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
