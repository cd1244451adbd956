"""Attention of many queries: loops over blocks of queries or of sequences, and averages as accelerators compute them.

=====================  ================================================================================================
``blocks``             blocks of queries, each with all keys; the choice between one block and a loop
``sequences``          blocks of sequences; results are written in place
``largest_products``   the largest product of each query (MaxSim)
``softmax_average``    averages under a softmax, as GPUs compute them
``product_average``    the same, as TPUs compute them
=====================  ================================================================================================
"""
