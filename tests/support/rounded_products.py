"""Evaluation of programs on a CPU with matrix products that round their operands as TPUs and GPUs do.

The program is lowered for the device. Then each product rounds its float32 operands to as many bits of the fraction as
the device multiplies at the product's precision (:data:`BITS`), and the CPU runs it. Products of bfloat16 and float16
numbers are exact everywhere.
"""

import dataclasses
import re

import jax
import jax.numpy as jnp
from jax import export
from jax.extend import mlir
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import func, stablehlo

TPU, GPU = "tpu", "cuda"

BITS = {(TPU, "DEFAULT"): 7, (TPU, "HIGH"): 15, (GPU, "DEFAULT"): 10, (GPU, "HIGH"): 10}
"""Those of bfloat16, of the sum of two bfloat16 numbers, and of TF32."""

PRODUCTS = ("stablehlo.dot_general", "stablehlo.convolution")
COMPOSITE = "stablehlo.composite"


def on_device(platform, function):
    """Returns a function of arrays that evaluates the program of ``function`` for a platform, with rounded products."""

    def evaluated(*arrays):
        program = export.export(jax.jit(lambda *arrays: function(*arrays)), platforms=(platform,))(*arrays)
        with jax.jit(jnp.sin).lower(0.0).compiler_ir().context:
            module = ir.Module.parse(program.mlir_module())
            found = [
                operation for operation in operations(module.operation) if operation.name in (COMPOSITE, *PRODUCTS)
            ]
            for operation in found:
                if operation.name == COMPOSITE:
                    _call_decomposition(operation)
                else:
                    _round_operands(platform, operation)
            code = mlir.serialize_portable_artifact(module, stablehlo.get_current_version(), True)
        program = dataclasses.replace(program, platforms=("cpu",), mlir_module_serialized=code)
        return jax.jit(program.call)(*arrays)

    return evaluated


def operations(operation):
    """Yields all operations inside of an operation of StableHLO."""
    for block in (block for region in operation.regions for block in region.blocks):
        for inner in block.operations:
            yield inner.operation
            yield from operations(inner.operation)


def _round_operands(platform, operation):
    """Rounds float32 operands as the device does, and widens others if the result is float32, as CPUs need."""
    wide, bits = ir.F32Type.get(), ir.IntegerType.get_signless(32)
    precisions = (
        re.findall("DEFAULT|HIGHEST|HIGH", str(operation.attributes.get("precision_config"))) or ["DEFAULT"] * 2
    )
    for place, (operand, name) in enumerate(zip(list(operation.operands), precisions, strict=True)):
        with ir.InsertionPoint(operation), operation.location:
            if operand.type.element_type == wide and name != "HIGHEST":
                sizes = [ir.IntegerAttr.get(bits, size) for size in (8, BITS[platform, name])]
                operation.operands[place] = stablehlo.reduce_precision(operand, *sizes)
            elif operand.type.element_type != wide == operation.results[0].type.element_type:
                operation.operands[place] = stablehlo.convert(
                    ir.RankedTensorType.get(operand.type.shape, wide), operand
                )


def _call_decomposition(operation):
    """Replaces an operation that CPUs may not have, such as a cumulative sum of GPUs, by a call of its definition."""
    with ir.InsertionPoint(operation), operation.location:
        types = [result.type for result in operation.results]
        call = func.CallOp(types, operation.attributes["decomposition"], list(operation.operands))
    for result, own in zip(operation.results, call.results, strict=True):
        result.replace_all_uses_with(own)
    operation.erase()
