/* Converts the text form of a key, as the server prints it, to a JavaScript value. */
export function nativeKey(type, text) {
	switch (type) {
		case 'smallint':
		case 'integer':
			return Number(text);
		case 'bigint':
			return Number.isSafeInteger(Number(text)) ? Number(text) : BigInt(text);
		case 'real':
		case 'double precision':
			return Number(text);
		case 'boolean':
			return text === 'true' || text === 't';
		case 'bytea':
			return Uint8Array.from(text.slice(2).match(/../g) ?? [], (pair) => parseInt(pair, 16));
		default:
			return text;
	}
}

/* The type without its length, which readers do not accept. */
export function typeName(type) {
	return type.replace(/\(.*/, '');
}
