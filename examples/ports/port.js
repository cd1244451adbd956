// Mean and last-token pooling for `attnpool check --command 'node examples/ports/port.js'` (docs/guides/porting.md).
// `--mistake` finds the last token by the number of real tokens, which is wrong unless all padding is on the right.
'use strict'
const mistake = process.argv.includes('--mistake')

const arrays = {float32: Float32Array, float64: Float64Array, int32: Int32Array, bool: Uint8Array}

function decode(argument) {
  if (argument.data) return {shape: argument.shape, data: argument.data.map(Number)} // of "NaN" and "Infinity", too
  const bytes = Uint8Array.from(Buffer.from(argument.base64, 'base64')) // a copy, whose start is aligned
  return {shape: argument.shape, data: new arrays[argument.dtype](bytes.buffer)}
}

function encode(shape, data) {
  return {shape, dtype: 'float32', base64: Buffer.from(data.buffer).toString('base64')}
}

// x [..., L, d], mask [..., L] or undefined: a result [..., d]
function pool(x, mask, combine) {
  const [length, width] = x.shape.slice(-2)
  const lead = x.shape.slice(0, -2)
  const rows = lead.reduce((a, b) => a * b, 1)
  const result = new Float32Array(rows * width)
  for (let row = 0; row < rows; row++) {
    const real = []
    for (let l = 0; l < length; l++) if (!mask || mask.data[row * length + l]) real.push(l)
    for (let c = 0; c < width; c++) {
      result[row * width + c] = combine(real, (l) => x.data[(row * length + l) * width + c])
    }
  }
  return encode([...lead, width], result)
}

const functions = {
  mean_pooling: (real, at) => (real.length ? real.reduce((sum, l) => sum + at(l), 0) / real.length : 0),
  last_pooling: (real, at) => (real.length ? at(mistake ? real.length - 1 : real[real.length - 1]) : 0),
}

function answer(line) {
  const call = JSON.parse(line)
  if (call.attnpool) {
    return {name: 'port.js', version: '1', functions: Object.keys(functions), dtypes: ['float32'], encodings: ['base64', 'data'], mask: 'boolean'}
  }
  try {
    const {x, mask} = call.arguments
    return {id: call.id, results: [pool(decode(x), mask && decode(mask), functions[call.function])]}
  } catch (error) {
    return {id: call.id, error: String(error)}
  }
}

require('readline')
  .createInterface({input: process.stdin, crlfDelay: Infinity})
  .on('line', (line) => process.stdout.write(JSON.stringify(answer(line)) + '\n'))
