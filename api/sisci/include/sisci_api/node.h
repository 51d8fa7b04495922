/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/**
 * @file node.h
 * Nodes, adapters, and what can be asked of the library.
 */
#ifndef SISCI_API_NODE_H
#define SISCI_API_NODE_H

#ifdef __cplusplus
extern "C" {
#endif

#define SCIProbeNode _SISCI_EXPANDE_FUNCTION_NAME(SCIProbeNode)
#define SCIQuery _SISCI_EXPANDE_FUNCTION_NAME(SCIQuery)
#define SCIGetLocalNodeId _SISCI_EXPANDE_FUNCTION_NAME(SCIGetLocalNodeId)
#define SCIGetNodeIdByAdapterName _SISCI_EXPANDE_FUNCTION_NAME(SCIGetNodeIdByAdapterName)
#define SCIGetNodeInfoByAdapterName _SISCI_EXPANDE_FUNCTION_NAME(SCIGetNodeInfoByAdapterName)
#define SCIGetAdapterTypeString _SISCI_EXPANDE_FUNCTION_NAME(SCIGetAdapterTypeString)
#define SCIGetAdapterFamilyString _SISCI_EXPANDE_FUNCTION_NAME(SCIGetAdapterFamilyString)
#define SCIGetCSRRegister _SISCI_EXPANDE_FUNCTION_NAME(SCIGetCSRRegister)
#define SCISetCSRRegister _SISCI_EXPANDE_FUNCTION_NAME(SCISetCSRRegister)
#define SCIGetLocalCSR _SISCI_EXPANDE_FUNCTION_NAME(SCIGetLocalCSR)
#define SCISetLocalCSR _SISCI_EXPANDE_FUNCTION_NAME(SCISetLocalCSR)
#define SCIRegisterPCIeRequester _SISCI_EXPANDE_FUNCTION_NAME(SCIRegisterPCIeRequester)
#define SCIUnregisterPCIeRequester _SISCI_EXPANDE_FUNCTION_NAME(SCIUnregisterPCIeRequester)

/**
 * Says whether a node is reached through an adapter: a process of it lives, and the links of both sides are up.
 *
 * @return 1 if so, else 0
 *
 * Errors (with 0): SCI_ERR_NO_SUCH_NODEID; SCI_ERR_ILLEGAL_NODEID; SCI_ERR_NODE_NOT_RESPONDING; SCI_ERR_NO_LINK_ACCESS;
 * SCI_ERR_NO_REMOTE_LINK_ACCESS.
 */
int SCIProbeNode(sci_desc_t sd, unsigned int localAdapterNo, unsigned int nodeId, unsigned int flags, sci_error_t *error);

/**
 * Answers a question about the library, an adapter, a segment or a map.
 *
 * @param command one of SCI_Q_...
 * @param data    the structure that belongs to the command: what is asked for is in it, and the answer is put there
 *
 * SCI_Q_VENDORID, SCI_Q_API and SCI_Q_SISCI_DRIVER_VERSION take a sci_query_string_t and give a text. SCI_Q_ADAPTER takes a
 * sci_query_adapter_t, and answers SCI_Q_ADAPTER_NODEID, SCI_Q_ADAPTER_CARD_TYPE, SCI_Q_ADAPTER_CONFIGURED (1 or 0),
 * SCI_Q_ADAPTER_LINK_OPERATIONAL (1 or 0), SCI_Q_ADAPTER_DMA_SIZE_ALIGNMENT, SCI_Q_ADAPTER_DMA_OFFSET_ALIGNMENT,
 * SCI_Q_ADAPTER_DMA_MTU (bytes that an engine copies at a time) and SCI_Q_ADAPTER_SUGGESTED_MIN_DMA_SIZE (bytes from which on a
 * transfer goes on by itself). SCI_Q_DMA takes a sci_query_dma_t, and answers SCI_Q_DMA_CAPABILITIES. SCI_Q_LOCAL_SEGMENT,
 * SCI_Q_REMOTE_SEGMENT and SCI_Q_MAP take a sci_query_local_segment_t, a sci_query_remote_segment_t and a sci_query_map_t.
 * Of memory of a device (SCIAttachPhysicalMemory()) these answer where it is on the bus. That is the address which the CPU uses; where
 * the host bridge does not translate, as on PCs, other devices use it, too. Of a segment of another process, its owner is asked once.
 *
 * Errors: SCI_ERR_ILLEGAL_QUERY (no such command or subcommand); SCI_ERR_NOT_SUPPORTED (every other one, such as an address on the
 * bus, of memory of the host, which has none that a program may know); SCI_ERR_NOT_CONNECTED, SCI_ERR_NODE_NOT_RESPONDING (where the
 * owner is asked).
 */
void SCIQuery(unsigned int command, void *data, unsigned int flags, sci_error_t *error);

/** Gives the number of the own node. */
void SCIGetLocalNodeId(unsigned int adapterNo, unsigned int *nodeId, unsigned int flags, sci_error_t *error);

/**
 * Gives the node numbers of a host, by its name in the configuration. The name of the host that this process runs on, as hostname(1)
 * says it, is that of the own node if no other has it.
 *
 * @param nodeId where they are put, 0 behind the last
 * @param type   where the kind of the adapters is put
 *
 * Errors: SCI_ERR_NO_SUCH_NODEID (no such name).
 */
void SCIGetNodeIdByAdapterName(const char *adaptername, dis_nodeId_list_t *nodeId, dis_virt_adapter_t *type,
                               unsigned int flags, sci_error_t *error);

/**
 * Gives the node numbers of a host and the number of its first adapter, by its name as for SCIGetNodeIdByAdapterName().
 *
 * @param adapterNo where one number is put, that of the first adapter; may be NULL
 * @param nodeId    where the node numbers are put, 0 behind the last
 * @param type      where the kind of the adapters is put; may be NULL
 *
 * Errors: SCI_ERR_NO_SUCH_NODEID (no such name).
 */
void SCIGetNodeInfoByAdapterName(const char *adaptername, unsigned int *adapterNo, dis_nodeId_list_t *nodeId,
                                 dis_virt_adapter_t *type, unsigned int flags, sci_error_t *error);

/** Returns the name of a kind of adapter, which is never freed. */
const char *SCIGetAdapterTypeString(dis_virt_adapter_t type);

/** Returns the name of the family of a kind of adapter, which is never freed. */
const char *SCIGetAdapterFamilyString(dis_virt_adapter_t type);

/** Reads a register of another node's adapter. Errors: SCI_ERR_NOT_SUPPORTED: adapters have no such registers here. */
void SCIGetCSRRegister(sci_desc_t sd, unsigned int localAdapterNo, unsigned int nodeId, unsigned int offset,
                       unsigned int *value, unsigned int flags, sci_error_t *error);

/** Writes a register of another node's adapter. Errors: SCI_ERR_NOT_SUPPORTED. */
void SCISetCSRRegister(sci_desc_t sd, unsigned int localAdapterNo, unsigned int nodeId, unsigned int offset,
                       unsigned int value, unsigned int flags, sci_error_t *error);

/** Reads a register of the own adapter. Errors: SCI_ERR_NOT_SUPPORTED. */
void SCIGetLocalCSR(sci_desc_t sd, unsigned int localAdapterNo, unsigned int offset, unsigned int *value,
                    unsigned int flags, sci_error_t *error);

/** Writes a register of the own adapter. Errors: SCI_ERR_NOT_SUPPORTED. */
void SCISetLocalCSR(sci_desc_t sd, unsigned int localAdapterNo, unsigned int offset, unsigned int value,
                    unsigned int flags, sci_error_t *error);

/**
 * Lets a device of this host write to remote segments by itself.
 *
 * @param bus   of the device
 * @param devfn its device and function: 8 * device + function
 *
 * Flags: SCI_FLAG_PCIE_REQUESTER_GLOBAL.
 * Errors: SCI_ERR_NOT_SUPPORTED where no adapter is a device.
 */
void SCIRegisterPCIeRequester(sci_desc_t sd, unsigned int localAdapterNo, unsigned int bus, unsigned int devfn,
                              unsigned int flags, sci_error_t *error);

/** Undoes SCIRegisterPCIeRequester(). Flags: SCI_FLAG_PCIE_REQUESTER_GLOBAL. Errors: SCI_ERR_NOT_SUPPORTED. */
void SCIUnregisterPCIeRequester(sci_desc_t sd, unsigned int localAdapterNo, unsigned int bus, unsigned int devfn,
                                unsigned int flags, sci_error_t *error);

#ifdef __cplusplus
}
#endif

#endif
